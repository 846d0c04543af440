package send

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// told is a Watched that notes each call of its Expired.
type told struct {
	Watched
	name string
	all  *notes
}

type notes struct {
	mu    sync.Mutex
	began time.Time
	all   []string
}

func (x *told) Expired() {
	x.all.mu.Lock()
	defer x.all.mu.Unlock()
	x.all.all = append(x.all.all, x.name+" "+time.Since(x.all.began).String())
}

// An item that does not end is reported exactly when its span is over, once. Earlier or later items
// do not matter, nor does a time without any.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const s = time.Second
		all := &notes{began: time.Now()}
		w := NewWatch(10 * s)
		item := func(name string) *told {
			x := &told{name: name, all: all}
			x.Of = x
			w.Begin(&x.Watched)
			return x
		}
		a := item("a")
		time.Sleep(4 * s)
		b := item("b")
		if !w.End(&a.Watched) {
			t.Error("a ended in time")
		}
		if w.End(&a.Watched) {
			t.Error("a ended twice")
		}
		time.Sleep(5 * s)
		c, d := item("c"), item("d")
		time.Sleep(5*s + 1) // b is overdue at 14 s
		if w.End(&b.Watched) {
			t.Error("b ended too late")
		}
		if !w.End(&c.Watched) {
			t.Error("c ended in time")
		}
		time.Sleep(100 * s)
		synctest.Wait()
		w.mu.Lock()
		if w.set {
			t.Error("the timer is set, and there is nothing")
		}
		w.mu.Unlock()
		w.Begin(&d.Watched) // once more
		w.Begin(&a.Watched)
		time.Sleep(10*s - 1)
		if !w.End(&d.Watched) {
			t.Error("d ended in time")
		}
		time.Sleep(s)
		synctest.Wait()
		if want := []string{"b 14s", "d 19s", "a 2m4.000000001s"}; !slices.Equal(all.all, want) {
			t.Errorf("%q, want %q", all.all, want)
		}
	})
}

// Many come and go at once. An item that ends in time is not reported; every other is, once.
func TestMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, all := NewWatch(time.Second), &notes{began: time.Now()}
		var wg sync.WaitGroup
		for n := range 40 {
			wg.Go(func() {
				for range 5 {
					x := &told{name: "late", all: all}
					x.Of = x
					w.Begin(&x.Watched)
					time.Sleep(time.Duration(n) * 50 * time.Millisecond) // up to 1.95 s; after 1 s it is overdue just now, and either is right
					if in := w.End(&x.Watched); n != 20 && in != (n < 20) {
						t.Errorf("%d: ended in time: %v", n, in)
					}
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		if got := len(all.all); got < 19*5 || got > 20*5 {
			t.Errorf("%d were told, want %d to %d", got, 19*5, 20*5)
		}
	})
}

// Nothing of it allocates, as it is in the way of each request.
func TestAllocationsOfAWatch(t *testing.T) {
	w, x := NewWatch(time.Hour), &told{}
	x.Of = x
	if n := testing.AllocsPerRun(100, func() { w.Begin(&x.Watched); w.End(&x.Watched) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	w.timer.Stop()
}
