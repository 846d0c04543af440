package node

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// history is some processes at a store, with all that befalls them and all that their nodes say. In a step the
// time goes on by some milliseconds, and each process sends what it may, gets answers and has the turns that are
// due.
type history struct {
	t       *testing.T
	rng     *rand.Rand
	now     mono.Time // by the clock of each process, too
	store   shelf
	set     time.Duration // by how much the store's clock is off
	old     []byte        // a copy of the store
	away    bool
	lose    float64 // how many answers of the store are lost
	way     int     // the longest way to it and back, in ms
	members []*process
	said    strings.Builder
}

// process is a node, its driver and its requests.
type process struct {
	*history
	node    *Node
	config  Config
	begins  time.Duration
	demand  int           // it has so many requests in line
	everyMS int           // or one comes after about so many ms
	free    float64       // the part of the limit that they leave free
	answers time.Duration // the longest time that a request takes
	line    int
	head    limit.Cost
	cost    func() limit.Cost
	open    []*limit.Sent
	number  uint64
	sent    int64
	began   bool
	stopped mono.Time // it does nothing until then
	told    int
}

func (h *history) say(format string, args ...any) { fmt.Fprintf(&h.said, format+"\n", args...) }

// one is the requests of a process that costs one each.
func one() limit.Cost { return limit.One }

// add adds a process.
func (h *history) add(of func() limit.Limiter, change func(p *process)) *process {
	p := &process{history: h, config: Config{ID: string(rune('a' + len(h.members))), New: of}, demand: 40, cost: one, answers: 30 * time.Millisecond}
	if change != nil {
		change(p)
	}
	p.config.Name, p.head = "host/"+p.config.ID, p.cost()
	h.members = append(h.members, p)
	return p
}

// step is a few milliseconds.
func (h *history) step() {
	h.now += mono.Time(5+h.rng.IntN(20))*ms + 1
	for _, p := range h.members {
		if h.now < mono.Time(p.begins) || h.now < p.stopped {
			continue
		}
		if !p.began {
			p.began, p.node = true, New(p.config)
		}
		p.come()
		p.settle()
		p.send()
		if p.node.Next() <= h.now {
			p.turn()
			p.send()
		}
	}
}

// come has requests come into the line.
func (p *process) come() {
	before := p.line
	if p.everyMS > 0 && p.rng.IntN(p.everyMS) < 12 {
		p.line++
	}
	p.line = max(p.line, p.demand)
	if p.line > 0 && before == 0 {
		p.node.Line(p.line, p.head, p.free)
	}
}

// settle has some requests end, each in its own way.
func (p *process) settle() {
	left := p.open[:0]
	for _, s := range p.open {
		age := p.now.Sub(s.At)
		if age < time.Duration(p.rng.Int64N(int64(p.answers))) {
			left = append(left, s)
			continue
		}
		o := limit.Outcome{Result: limit.Accepted, RTT: age, ArrivedAgo: age / 2}
		switch p.rng.IntN(12) {
		case 0:
			o = limit.Outcome{Result: limit.Unknown}
		case 1:
			o = limit.Outcome{Result: limit.Unsent}
		case 2:
			o = limit.Outcome{Result: limit.Failed}
		case 3:
			o.Result, o.ArrivedAgo = limit.Limited, 0
		case 4, 5:
			o.Metered, o.Actual = true, s.Cost
			for u := range o.Actual {
				o.Actual[u] -= o.Actual[u] / 4
			}
		}
		p.node.Settle(p.now, s, &o)
	}
	p.open = left
}

// send sends what may go.
func (p *process) send() {
	n := p.node
	for p.line > 0 {
		at := n.ReadyLeaving(p.now, p.head, p.free)
		if at > p.now {
			n.Asked(p.head, p.free)
			n.Waiting(p.line, p.free)
			p.say("%s waits until %d, in line %d, room %d", p.config.ID, at, n.NotBefore(p.now, p.line, p.head, p.head), n.Room(p.now, p.head))
			return
		}
		p.number++
		s := &limit.Sent{At: p.now, Number: p.number, Cost: p.head, Leaves: p.free}
		n.Admit(s)
		p.line, p.sent, p.head = p.line-1, p.sent+1, p.cost()
		if !n.Fresh(p.now.Add(time.Duration(p.rng.IntN(5))*time.Millisecond), s) {
			n.Settle(p.now, s, &limit.Outcome{Result: limit.Unsent})
			continue
		}
		p.open = append(p.open, s)
	}
}

var errAway = errors.New("the store is away")

// turn has the node have a turn, that may fail.
func (p *process) turn() {
	n, way := p.node, func() mono.Time { return mono.Time(p.rng.IntN(1+max(p.way, 3))) * ms / 2 }
	n.Begin(p.now)
	if p.away {
		n.End(p.now+way(), errAway)
		p.says(errAway)
		return
	}
	at := p.now + way()
	r := p.store.reading(at)
	r.Clock, r.Wall = r.Clock+int64(p.set), r.Wall+int64(p.set)
	blob, err := n.Read(p.now, at+way(), r)
	if err == nil {
		p.told += n.Telling()
		switch lost := p.rng.Float64(); {
		case lost < p.lose/2: // the put came too late
			err = errAway
		case lost < p.lose:
			p.store.blob, err = blob, errAway
		default:
			p.store.blob = blob
		}
	}
	p.now += 2 * way()
	n.End(p.now, err)
	p.says(err)
}

// says has a node say all that it says.
func (p *process) says(err error) {
	n := p.node
	v := n.View()
	from, of, on := n.Alone()
	p.say("%s at %d: %v, %v; next %d, in %t, held back %t, alone %d %d %t", p.config.ID, p.now, err, v.Quiet, n.Next(), n.In(), n.HeldBack(), from, of, on)
	if v.Book != nil {
		p.say("%+v parts %v", *v.Book, Parts(v.Book.Nodes, v.Book.Latest))
	}
	p.say("%+v", n.AppendUsage(nil, p.now))
}

// What befalls a history.
func forget(h *history)   { h.store.forget() }
func keep(h *history)     { h.old = slices.Clone(h.store.blob) }
func goBack(h *history)   { h.store.blob = slices.Clone(h.old) }
func goAway(h *history)   { h.away = true }
func comeBack(h *history) { h.away = false }

// set has the store's clock set.
func set(by time.Duration) func(h *history) { return func(h *history) { h.set += by } }

// does is something that a process does.
func does(i int, f func(p *process)) func(h *history) { return func(h *history) { f(h.members[i]) } }

func stops(d time.Duration) func(p *process) { return func(p *process) { p.stopped = p.now.Add(d) } }
func closes(p *process)                      { p.demand, p.everyMS, p.line = 0, 0, 0; p.node.Close() }
func wants(n int) func(p *process) {
	return func(p *process) {
		p.demand, p.line = n, n
		p.node.Line(n, p.head, p.free)
	}
}
func alters(to int64) func(p *process) {
	return func(p *process) {
		p.node.Alter(func(l limit.Limiter, now mono.Time) error {
			return l.(interface {
				SetLimit(now mono.Time, n int64) error
			}).SetLimit(now, to)
		})
	}
}

// made returns a limiter that is valid.
func made[L limit.Limiter](l L, err error) limit.Limiter {
	if err != nil {
		panic(err)
	}
	return l
}

// The limits of histories.
func forty() limit.Limiter   { return limit.MustRolling(40, time.Second) }
func hundred() limit.Limiter { return limit.MustRolling(100, 30*time.Second) }
func refills() limit.Limiter {
	return made(limit.NewBucket(limit.BucketConfig{Limit: 30, Window: time.Second, Burst: 12}))
}
func byClock() limit.Limiter {
	return made(limit.NewCalendar(limit.CalendarConfig{Limit: 60, Window: 3 * time.Second}))
}
func weighs() limit.Limiter {
	return made(limit.NewWeighted(limit.WeightedConfig{Limit: 40, Window: 2 * time.Second}))
}
func six() limit.Limiter { return made(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 6})) }
func both() limit.Limiter {
	return limit.NewAll(limit.MustRolling(50, time.Second),
		made(limit.NewRolling(limit.RollingConfig{Limit: 3000, Window: time.Second, Unit: limit.Tokens})))
}

// A node does what it did, and says what it said, in quiet hours and when the store fails. Programs of two versions
// may share a store, so whoever changes what a node does looks at which histories change. lab/nodesim has the laws
// that hold in each of them.
func TestWhatNodesSay(t *testing.T) {
	race.Without(t) // one goroutine races with nobody
	many := func(of func() limit.Limiter, n int, change func(p *process)) func(h *history) {
		return func(h *history) {
			for range n {
				h.add(of, change)
			}
		}
	}
	costly := func(p *process) {
		p.cost = func() limit.Cost {
			return limit.Cost{limit.Requests: 1, limit.Tokens: 20 + int64(p.rng.ExpFloat64()*60)}
		}
	}
	var b strings.Builder
	for seed, story := range []struct {
		name  string
		begin func(h *history)
		when  map[int]func(h *history) // by the number of the step
	}{
		{"one, at a new store", many(forty, 1, nil), nil},
		{"three", many(forty, 3, nil), map[int]func(h *history){150: does(0, closes), 220: does(1, wants(0)), 400: does(1, wants(30))}},
		{"weights", func(h *history) {
			h.add(forty, nil)
			h.add(forty, func(p *process) { p.config.Weight = 3 })
			h.add(forty, func(p *process) { p.config.Weight, p.config.Least = 0.25, 0.3 })
			h.add(forty, func(p *process) { p.demand, p.everyMS = 0, 700 })
		}, nil},
		{"nine of a window of 30 s", many(hundred, 9, nil), nil},
		{"a bucket, and a newcomer", func(h *history) {
			many(refills, 3, nil)(h)
			h.add(refills, func(p *process) { p.begins = 4 * time.Second })
		}, nil},
		{"a window of the clock", many(byClock, 3, func(p *process) { p.demand, p.everyMS = 0, 60 }), nil},
		{"a weighted window, and stops", many(weighs, 3, nil), map[int]func(h *history){
			200: does(0, stops(3*time.Second)), 350: does(1, stops(1200*time.Millisecond))}},
		{"tokens", many(both, 3, costly), nil},
		{"some leave a part free", func(h *history) {
			many(forty, 2, func(p *process) { p.free = 0.25 })(h)
			h.add(forty, func(p *process) { p.demand, p.everyMS = 0, 150 })
		}, map[int]func(h *history){300: does(2, wants(40)), 450: does(2, wants(0))}},
		{"tokens, of which some leave a part free", func(h *history) {
			h.add(both, func(p *process) { costly(p); p.free = 0.1 })
			h.add(both, func(p *process) { costly(p); p.demand, p.everyMS = 0, 40 })
		}, nil},
		{"places", many(six, 3, func(p *process) { p.answers = 900 * time.Millisecond }), map[int]func(h *history){
			250: does(0, wants(0)), 400: does(0, wants(3)), 500: does(1, closes)}},
		{"places that are not all used", many(func() limit.Limiter { return made(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 20})) },
			2, func(p *process) { p.demand, p.everyMS, p.answers = 0, 60, 400*time.Millisecond }), nil},
		{"places, of which some stay free", func(h *history) {
			many(six, 2, func(p *process) { p.free, p.answers = 0.4, 400*time.Millisecond })(h)
			h.add(six, func(p *process) { p.demand, p.everyMS, p.answers = 0, 300, 400*time.Millisecond })
		}, map[int]func(h *history){400: does(2, wants(9))}},
		{"places that all want, of which some stay free", func(h *history) {
			h.add(six, func(p *process) { p.demand, p.answers = 9, 500*time.Millisecond })
			many(six, 2, func(p *process) { p.free, p.answers = 0.4, 500*time.Millisecond })(h)
		}, map[int]func(h *history){250: does(0, wants(0)), 400: does(0, wants(9)), 500: does(2, closes)}},
		{"places of a process that was killed", many(six, 3, func(p *process) {
			p.answers, p.config.Ended = 900*time.Millisecond, func(id string) bool { return id == "b" && p.now > 5000*ms }
		}), map[int]func(h *history){200: does(1, stops(time.Hour))}},
		{"answers are lost", func(h *history) {
			h.lose = 0.2
			many(forty, 3, nil)(h)
		}, nil},
		{"the store forgets", many(forty, 4, nil), map[int]func(h *history){250: forget, 400: forget, 405: does(2, stops(2500*time.Millisecond))}},
		{"a slow store", func(h *history) {
			h.way = 150
			many(forty, 3, nil)(h)
			h.add(forty, func(p *process) { p.begins = 4 * time.Second })
		}, map[int]func(h *history){300: keep, 400: does(1, stops(1200*time.Millisecond)), 450: goBack}},
		{"answers are lost, and the store forgets", func(h *history) {
			h.lose = 0.4
			many(forty, 4, nil)(h)
		}, map[int]func(h *history){250: forget, 330: keep, 400: forget, 460: goBack, 520: forget}},
		{"nobody is there while the clock is set back", func(h *history) {
			h.add(forty, nil)
			h.add(forty, func(p *process) { p.begins = 5 * time.Second })
		}, map[int]func(h *history){200: does(0, closes), 300: set(-time.Hour)}},
		{"the store goes back", many(forty, 3, nil), map[int]func(h *history){200: keep, 300: goBack, 420: goBack, 500: does(0, stops(3*time.Second))}},
		{"the store's clock is set", func(h *history) {
			many(refills, 3, nil)(h)
			h.add(refills, func(p *process) { p.begins = 5 * time.Second })
		}, map[int]func(h *history){200: set(time.Second), 320: set(-3 * time.Second), 330: keep, 480: set(time.Hour)}},
		{"a clock that nobody sets", func(h *history) {
			h.store.steady = true
			many(forty, 3, nil)(h)
		}, map[int]func(h *history){300: keep, 400: goBack}},
		{"the store is away, and each sends its part", many(forty, 3, func(p *process) { p.config.Split = true }), map[int]func(h *history){
			600: goAway, 1400: comeBack}},
		{"the limit is changed", many(forty, 3, nil), map[int]func(h *history){200: does(0, alters(10)), 400: does(1, alters(90))}},
		{"the places are changed", many(six, 2, nil), map[int]func(h *history){200: does(0, alters(2)), 400: does(1, alters(9))}},
		{"another limit, and damage", func(h *history) {
			many(forty, 2, nil)(h)
			h.add(hundred, func(p *process) { p.begins = 3 * time.Second })
		}, map[int]func(h *history){400: func(h *history) { h.store.blob[9] ^= 1 }}},
	} {
		h := &history{t: t, rng: rand.New(rand.NewPCG(uint64(seed), 7)), store: shelf{incarnation: "one"}}
		story.begin(h)
		if seed > 0 {
			first := h.store.reading(0)
			h.store.blob = Rested(h.members[0].config, &first)
		}
		fmt.Fprintf(&b, "\n%s\n", story.name)
		for step := 1; step <= 600 || story.when[1400] != nil && step <= 2000; step++ {
			if f := story.when[step]; f != nil {
				f(h)
			}
			if h.step(); step%200 == 0 {
				fmt.Fprintf(&b, "  after %.1f s:", h.now.Sub(0).Seconds())
				for _, p := range h.members {
					fmt.Fprintf(&b, " %s sent %d, told %d;", p.config.ID, p.sent, p.told)
				}
				fmt.Fprintf(&b, " all they say: %s\n", golden.Sum(h.said.String()))
				h.said.Reset()
			}
		}
	}
	golden.CompareFloats(t, "nodes.golden", b.String())
}
