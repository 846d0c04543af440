// Package parallel runs a list of jobs on all cores. Each core runs one job at a time.
package parallel

import (
	"context"
	"runtime"
	"sync"
)

// OnAll runs the jobs 0 to n−1, begun in this order, one at a time on each core. worker makes what
// a core runs them with; what that returns puts the result away, and is called by one core at a
// time: nil if there is nothing to keep. When a job has failed, or ctx has ended, no other is
// begun. The error is that of the first job that failed.
func OnAll(ctx context.Context, n int, worker func() (run func(i int) (keep func(), err error))) error {
	var (
		mu    sync.Mutex
		next  int
		first error
		wg    sync.WaitGroup
	)
	take := func() (i int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == n || first != nil || ctx.Err() != nil {
			return 0, false
		}
		next++
		return next - 1, true
	}
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			run := worker()
			for i, ok := take(); ok; i, ok = take() {
				keep, err := run(i)
				mu.Lock()
				switch {
				case err != nil && first == nil:
					first = err
				case err == nil && keep != nil:
					keep()
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return first
}

// Each is a worker without anything of its own.
func Each(run func(i int) (keep func(), err error)) func() func(i int) (func(), error) {
	return func() func(i int) (func(), error) { return run }
}
