package rule_test

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit/mono"
)

// A server that takes 3 requests in any second. A judge reads its log and finds out whether the
// rule was kept.
func ExampleNewRolling() {
	config := rule.RollingConfig{Limit: 3, Window: time.Second}
	server, err := rule.NewRolling(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	judge, err := config.Witness()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, ms := range []int{0, 10, 20, 900, 1001, 1002} {
		at := mono.Time(time.Duration(ms) * time.Millisecond)
		passes := server.Arrive(at, 1)
		judge.Hear(at, 1, passes)
		fmt.Println(at, passes)
	}
	found := judge.Finding()
	fmt.Println("kept:", found.Kept(), "- at most", found.Most, "of", found.Limit)
	// Output:
	// 0s true
	// 10ms true
	// 20ms true
	// 900ms false
	// 1.001s true
	// 1.002s false
	// kept: true - at most 3 of 3
}
