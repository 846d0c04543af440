package sim

import (
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Published is the limiter of a published exchange client, in its several versions: a ring with the
// times of the last Limit sends in whole milliseconds. A request goes when the oldest was more than
// Window + buffer ago. It counts by send times, so jitter of the path breaks its promise: it is
// here to be measured against.
type Published struct {
	config PublishedConfig
	ring   []int64 // in ms
	next   int
	last   int64
	buffer int64

	latencies []int64 // the last 100, in ms
	oldest    int
	sum       int64
}

// PublishedConfig says which version it is.
type PublishedConfig struct {
	Limit  int
	Window time.Duration
	// Gap, if positive, is the fixed gap between requests that the original has in addition to the ring.
	Gap time.Duration
	// Buffer is added to the window. The adaptive version starts with it.
	Buffer time.Duration
	// Adaptive sets the buffer to 1.1 × the mean of the last 100 round trips, within BufferMin and
	// BufferMax. As printed, the code never records round trips, and the buffer stays what it was.
	Adaptive             bool
	BufferMin, BufferMax time.Duration
	// Inclusive lets a request go at the exact end of the window, as the threaded version does. The
	// others wait for the next millisecond.
	Inclusive bool
}

// NewPublished returns a limiter that has sent nothing.
func NewPublished(c PublishedConfig) *Published {
	p := &Published{config: c, ring: make([]int64, c.Limit), last: -1 << 40, buffer: c.Buffer.Milliseconds()}
	for i := range p.ring {
		p.ring[i] = -1 << 40
	}
	return p
}

// Ready implements limit.Limiter.
func (p *Published) Ready(now mono.Time, _ limit.Cost) mono.Time {
	strict := int64(1)
	if p.config.Inclusive {
		strict = 0
	}
	t := p.ring[p.next] + p.config.Window.Milliseconds() + p.buffer + strict
	if p.config.Gap > 0 {
		t = max(t, p.last+p.config.Gap.Milliseconds()+1)
	}
	return max(now, mono.Time(t)*mono.Time(time.Millisecond))
}

// Admit implements limit.Limiter.
func (p *Published) Admit(s *limit.Sent) {
	p.last = int64(s.At) / int64(time.Millisecond)
	p.ring[p.next] = p.last
	p.next = (p.next + 1) % len(p.ring)
}

// Settle implements limit.Limiter.
func (p *Published) Settle(now mono.Time, s *limit.Sent, _ *limit.Outcome) {
	if !p.config.Adaptive {
		return
	}
	took := now.Sub(s.At).Milliseconds()
	if len(p.latencies) < 100 {
		p.latencies = append(p.latencies, took)
	} else {
		p.sum -= p.latencies[p.oldest]
		p.latencies[p.oldest] = took
		p.oldest = (p.oldest + 1) % len(p.latencies)
	}
	p.sum += took
	p.buffer = p.sum * 11 / (10 * int64(len(p.latencies)))
	p.buffer = min(p.config.BufferMax.Milliseconds(), max(p.config.BufferMin.Milliseconds(), p.buffer))
}
