package share_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/share"
)

// While the store is away for all, three Members send a third each. They begin a window after all
// grants have come to their end. A Member that comes meanwhile sends nothing. When the store is
// back, nothing goes until the requests sent meanwhile no longer count. The server refuses none.
func TestSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s := newMemory(), newServer(20, time.Second)
		var wg sync.WaitGroup
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		var members []*share.Member
		counts := make([]int, 4)
		join := func(count *int) {
			m, gate := member(t, share.Config{Store: store, Name: "it", Own: twenty, Fallback: share.Split})
			members = append(members, m)
			send(ctx, &wg, gate, s, 30, count)
		}
		for i := range 3 {
			join(&counts[i])
		}
		time.Sleep(20 * time.Second)
		store.set(func() { store.away = errors.New("the store is away") })
		time.Sleep(3 * time.Second)
		before := s.count()
		join(&counts[3])
		time.Sleep(4 * time.Second)
		if n := s.count() - before; n > 0 {
			t.Errorf("%d sent before what was granted no longer counts", n)
		}
		time.Sleep(13 * time.Second)
		before = s.count()
		time.Sleep(10 * time.Second)
		if n := s.count() - before; n < 150 || n > 183 { // 3 times 6 in a second
			t.Errorf("%d sent in 10 s without the store", n)
		}
		if counts[3] > 0 {
			t.Errorf("one that had never reached the store sent %d", counts[3])
		}
		store.set(func() { store.away = nil })
		time.Sleep(4 * time.Second)
		before = s.count()
		time.Sleep(3 * time.Second)
		if n := s.count() - before; n > 0 {
			t.Errorf("%d sent when the store was just back", n)
		}
		time.Sleep(10 * time.Second)
		before = s.count()
		time.Sleep(30 * time.Second) // it goes in bursts of 20, of which 10 s have 9 or 10
		if n := s.count() - before; n < 570 {
			t.Errorf("%d sent in 30 s when all was well again", n)
		}
		wg.Wait()
		if s.refused > 0 {
			t.Errorf("%d of %d refused", s.refused, s.sent)
		}
		for _, m := range members {
			m.Close(context.Background())
		}
	})
}
