package strategy_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit/mono"
)

// ran is what the published demo reports of a run.
type ran struct {
	retry    float64       // mean of the clients' shares of limited tries, in percent
	maxSleep time.Duration // the longest, with jitter
	sd       float64       // of the clients' tries, sample form
	served   int
	left     float64       // in the bucket at the end
	sleep    time.Duration // the threads' mean at the end
}

// demoRun is the published demo: a bucket of 4500 that refills 4500 an hour and begins empty, 60 ms per request, of which
// half to the server. The server keeps time from the first request.
func demoRun(t *testing.T, name string, seed uint64, processes, threads int, duration time.Duration, p strategy.Params) ran {
	type client struct {
		thread       strategy.Thread
		at           mono.Time // next event
		sending      bool      // that is an arrival; else an answer
		answer       strategy.Answer
		tries, limit int
	}
	end := mono.Time(duration)
	var r ran
	var clients []*client
	send := func(c *client, now mono.Time) {
		sent := c.thread.Send(now)
		r.maxSleep = max(r.maxSleep, min(sent.Sub(now), time.Hour))
		c.answer = strategy.Answer{Known: true, Sent: sent}
		c.at, c.sending = sent.Add(30*ms), true
	}
	for i := range processes {
		proc, rng := process(t, name, p), source(seed<<8+uint64(i))
		for range threads {
			c := &client{thread: proc.Thread(rng)}
			send(c, 0)
			clients = append(clients, c)
		}
	}
	left, counted := 0.0, clients[0].at
	for {
		c := slices.MinFunc(clients, func(a, b *client) int { return int(a.at - b.at) })
		if c.at > end {
			break
		}
		if !c.sending {
			c.thread.Answer(c.at, c.answer)
			send(c, c.at)
			continue
		}
		left = min(left+c.at.Sub(counted).Seconds()*1.25, 4500)
		counted = c.at
		c.tries++
		if left >= 1 {
			left--
			r.served++
		} else {
			c.answer.Limited = true
			c.limit++
		}
		c.answer.Remaining = math.Floor(left)
		c.at, c.sending = c.at.Add(30*ms), false
	}
	r.left = left
	mean := 0.0
	for _, c := range clients {
		r.sleep += c.thread.Sleep() / time.Duration(len(clients))
		r.retry += 100 * float64(c.limit) / float64(c.tries) / float64(len(clients))
		mean += float64(c.tries) / float64(len(clients))
	}
	for _, c := range clients {
		r.sd += (float64(c.tries) - mean) * (float64(c.tries) - mean) / float64(len(clients)-1)
	}
	r.sd = math.Sqrt(r.sd)
	return r
}

// The bands are the 5th and 95th percentile of 200 runs of an independent simulation of the published steps, and the
// middle its median. The medians of the runs here have to lie in the bands, and close to the middle where there are many.
func TestPublishedFigures(t *testing.T) {
	for _, c := range []struct {
		name                      string
		retryMin, retry, retryMax float64 // percent
		retryOff                  float64 // from the middle
		sleepMin, sleepMax        time.Duration
		sdMin, sdMax              float64
	}{
		{"exponential-backoff", 80, 81.4, 82, 0.3, 26 * s, 6 * time.Minute, 60, 480},
		{gradual, 41, 43.9, 48, 1.5, 2 * time.Minute, 5 * time.Minute, 630, 1010},
		{proportional, 2.7, 3.2, 3.9, 0.2, 10 * s, 34 * s, 32, 230},
		{proportionalRemaining, 3.0, 3.5, 4.2, 0.2, 13600 * ms, 26300 * ms, 68, 140},
	} {
		for _, shape := range [][2]int{{2, 5}, {10, 1}} {
			t.Run(fmt.Sprintf("%s/%d processes of %d", c.name, shape[0], shape[1]), func(t *testing.T) {
				seeds := uint64(60)
				if testing.Short() {
					seeds = 10
				}
				var retry, sd []float64
				var sleep []time.Duration
				for seed := range seeds {
					r := demoRun(t, c.name, seed, shape[0], shape[1], 30*time.Minute, hourly)
					retry, sd, sleep = append(retry, r.retry), append(sd, r.sd), append(sleep, r.maxSleep)
					if r.served < 2000 || r.served > 2250 {
						t.Errorf("seed %d: %d of 2250 requests were served", seed, r.served)
					}
				}
				slices.Sort(retry)
				slices.Sort(sd)
				slices.Sort(sleep)
				last, m := len(sd)-1, len(sd)/2
				t.Logf("retry %.2f %% (%.2f–%.2f), longest sleep %v (%v–%v), sd %.1f (%.1f–%.1f)", retry[m], retry[0], retry[last],
					sleep[m].Round(ms), sleep[0].Round(ms), sleep[last].Round(ms), sd[m], sd[0], sd[last])
				if retry[m] < c.retryMin || retry[m] > c.retryMax || seeds >= 60 && math.Abs(retry[m]-c.retry) > c.retryOff {
					t.Errorf("%.2f %% are retries, want %.2f and %.2f at most off", retry[m], c.retry, c.retryOff)
				}
				if sleep[m] < c.sleepMin || sleep[m] > c.sleepMax || sd[m] < c.sdMin || sd[m] > c.sdMax {
					t.Errorf("longest sleep %v, want %v–%v; sd %.1f, want %v–%v", sleep[m], c.sleepMin, c.sleepMax, sd[m], c.sdMin, c.sdMax)
				}
			})
		}
	}
}
