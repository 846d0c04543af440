package redis_test

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/share/redis"
)

// One limit for all processes, in a Redis. It has no Output, since it needs a server.
func ExampleOpen() {
	var store *redis.Store
	store, err := redis.Open("redis://localhost:6379/0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	m, err := share.Limiter(store, "github", func() limit.Limiter { return limit.MustRolling(20, time.Second) })
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = paceline.NewGate(m)
}
