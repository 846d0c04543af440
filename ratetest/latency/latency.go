// Package latency provides distributions of one-way latency: the time that a message takes from one
// end of a network path to the other. Simulated links and rate-limited test servers draw their
// latencies from these distributions. A distribution is written as a short text in flags and
// scenarios. For example, uniform:0-50ms means from 0 to 50 ms, each value equally likely.
//
// The distributions of package latency are for configurations of ratetest and lab/sim/fleet. A
// client need not configure a latency: the limiters of package limit keep to a limit at any
// latency.
//
// Package latency draws a latency and computes with it, but never waits. The caller supplies the
// random numbers.
package latency

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Law is a distribution of one-way latencies. Each draw is independent: the latency of one message
// does not affect the next. A Law is a value: copy and compare it freely. Goroutines may share it
// if each has its own random numbers. The zero Law is no latency at all.
//
// No draw is negative or longer than 73 years.
type Law struct {
	kind kind
	a, b time.Duration // the durations in the law's name
	p    float64       // a probability, an exponent, or the deviation of the logarithm
	rec  *recording
}

// longest is the longest latency of any law, 73 years. A sum of a few such latencies does not
// overflow. Laws with a long tail are cut off there.
const longest = time.Duration(1 << 61)

type kind uint8

const (
	constant kind = iota
	uniform
	exponential
	lognormal
	bimodal
	pareto
	recorded
)

type recording struct {
	name           string
	draws          []time.Duration
	mean, min, max time.Duration
}

// Forms lists the names that Parse reads, by example.
const Forms = "constant:10ms, uniform:0-50ms, exponential:20ms, exponential:20ms+5ms (mean of the exponential part, " +
	"floor), " +
	"lognormal:10ms,p99=100ms (median, 99th percentile), bimodal:0,3s@0.1 (the second with that probability), " +
	"pareto:5ms,1.1 (smallest, exponent), recorded:FILE (a duration or a number of milliseconds per line)"

// Constant is always d. Like the other constructors, it is for laws in source code, and panics on a
// bad argument. Use Parse for laws from users.
func Constant(d time.Duration) Law { return must(newConstant(d)) }

// Uniform is any nanosecond from lo to hi, both included, equally likely.
func Uniform(lo, hi time.Duration) Law { return must(newUniform(lo, hi)) }

// Exponential is floor + an exponential of the given mean: mostly short, sometimes several times
// the mean.
func Exponential(mean, floor time.Duration) Law { return must(newExponential(mean, floor)) }

// Lognormal is given by its median, and by the value that one in a hundred exceeds. Round trips of
// a busy path look like this.
func Lognormal(median, p99 time.Duration) Law { return must(newLognormal(median, p99)) }

// Bimodal is b with probability p, otherwise a. It models a retransmission or a stalled host.
func Bimodal(a, b time.Duration, p float64) Law { return must(newBimodal(a, b, p)) }

// Pareto exceeds x ≥ scale with probability (scale/x)^alpha. For alpha ≤ 1 it has no mean; at 1.1
// it hardly has one.
func Pareto(scale time.Duration, alpha float64) Law { return must(newPareto(scale, alpha)) }

func must(l Law, err error) Law {
	if err != nil {
		panic("latency: " + err.Error())
	}
	return l
}

func newConstant(d time.Duration) (Law, error) {
	return Law{kind: constant, a: d}, check("latency", d)
}

func newUniform(lo, hi time.Duration) (Law, error) {
	if lo > hi {
		return Law{}, fmt.Errorf("the smallest, %v, is larger than the largest, %v", lo, hi)
	}
	return Law{kind: uniform, a: lo, b: hi}, errors.Join(check("smallest", lo), check("largest", hi))
}

func newExponential(mean, floor time.Duration) (Law, error) {
	return Law{kind: exponential, a: mean, b: floor}, errors.Join(check("mean", mean), check("floor", floor))
}

// z99 is the 99th percentile of the standard normal distribution.
const z99 = 2.3263478740408408

func newLognormal(median, p99 time.Duration) (Law, error) {
	if median <= 0 || p99 < median {
		return Law{}, fmt.Errorf("want 0 < median ≤ p99, got median %v and p99 %v", median, p99)
	}
	return Law{kind: lognormal, a: median, b: p99, p: math.Log(float64(p99)/float64(median)) / z99}, check("p99", p99)
}

func newBimodal(a, b time.Duration, p float64) (Law, error) {
	if !(p >= 0 && p <= 1) {
		return Law{}, fmt.Errorf("probability %v is not from 0 to 1", p)
	}
	return Law{kind: bimodal, a: a, b: b, p: p}, errors.Join(check("first", a), check("second", b))
}

func newPareto(scale time.Duration, alpha float64) (Law, error) {
	if scale <= 0 {
		return Law{}, fmt.Errorf("scale %v is not positive", scale)
	}
	if !(alpha > 0) || math.IsInf(alpha, 1) {
		return Law{}, fmt.Errorf("exponent %v is not positive and finite", alpha)
	}
	return Law{kind: pareto, a: scale, p: alpha}, check("scale", scale)
}

func check(what string, d time.Duration) error {
	if d < 0 || d > longest {
		return fmt.Errorf("%s %v is not from 0 to %v", what, d, longest)
	}
	return nil
}

// Recorded draws from measured latencies, each equally likely, in random order. Bursts and steps of
// the recording are lost. String returns the name. Read reads a file.
func Recorded(name string, latencies []time.Duration) (Law, error) {
	if len(latencies) == 0 {
		return Law{}, fmt.Errorf("latency: recorded:%s: holds no latency", name)
	}
	r := &recording{name: name, draws: slices.Clone(latencies), min: slices.Min(latencies), max: slices.Max(latencies)}
	sum := 0.0
	for i, d := range r.draws {
		if err := check("latency", d); err != nil {
			return Law{}, fmt.Errorf("latency: recorded:%s: number %d: %w", name, i+1, err)
		}
		sum += float64(d)
	}
	r.mean = time.Duration(math.Round(sum / float64(len(r.draws))))
	return Law{kind: recorded, rec: r}, nil
}

// Draw returns the latency of one message. It does not allocate.
func (l Law) Draw(rng *rand.Rand) time.Duration {
	switch l.kind {
	case uniform:
		return l.a + time.Duration(rng.Uint64N(uint64(l.b-l.a)+1))
	case exponential:
		return cut(float64(l.b) + float64(l.a)*rng.ExpFloat64())
	case lognormal:
		return cut(float64(l.a) * math.Exp(l.p*rng.NormFloat64()))
	case bimodal:
		if rng.Float64() < l.p {
			return l.b
		}
		return l.a
	case pareto: // the logarithm of a Pareto variable is exponential
		return cut(float64(l.a) * math.Exp(rng.ExpFloat64()/l.p))
	case recorded:
		return l.rec.draws[rng.IntN(len(l.rec.draws))]
	}
	return l.a
}

func cut(nanoseconds float64) time.Duration {
	if nanoseconds > float64(longest) {
		return longest
	}
	return time.Duration(nanoseconds)
}

// Mean returns the mean, if there is one within 73 years.
func (l Law) Mean() (mean time.Duration, ok bool) {
	a, m := float64(l.a), 0.0
	switch l.kind {
	case constant:
		return l.a, true
	case uniform:
		return l.a + (l.b-l.a)/2, true
	case exponential:
		m = float64(l.b) + a
	case lognormal:
		m = a * math.Exp(l.p*l.p/2)
	case bimodal:
		m = a*(1-l.p) + float64(l.b)*l.p
	case pareto:
		if l.p <= 1 {
			return 0, false
		}
		m = a * l.p / (l.p - 1)
	case recorded:
		return l.rec.mean, true
	}
	if m > float64(longest) {
		return 0, false
	}
	return time.Duration(math.Round(m)), true
}

// Min returns the smallest latency: 0 for a lognormal law, unless it is constant.
func (l Law) Min() time.Duration {
	switch l.kind {
	case exponential:
		return l.b
	case lognormal:
		if l.p == 0 {
			return l.a
		}
		return 0
	case bimodal:
		switch {
		case l.p == 0:
			return l.a
		case l.p == 1:
			return l.b
		}
		return min(l.a, l.b)
	case recorded:
		return l.rec.min
	}
	return l.a
}

// Max returns the largest latency, if the law has one. It is a setting for clients that rely on a
// known largest latency.
func (l Law) Max() (largest time.Duration, ok bool) {
	switch l.kind {
	case constant:
		return l.a, true
	case uniform:
		return l.b, true
	case exponential:
		if l.a == 0 {
			return l.b, true
		}
	case lognormal:
		if l.p == 0 {
			return l.a, true
		}
	case bimodal:
		switch {
		case l.p == 0:
			return l.a, true
		case l.p == 1:
			return l.b, true
		}
		return max(l.a, l.b), true
	case recorded:
		return l.rec.max, true
	}
	return 0, false
}

// String returns the name of the law, in the form that Parse reads.
func (l Law) String() string {
	switch l.kind {
	case uniform:
		return "uniform:" + text(l.a) + "-" + text(l.b)
	case exponential:
		if l.b == 0 {
			return "exponential:" + text(l.a)
		}
		return "exponential:" + text(l.a) + "+" + text(l.b)
	case lognormal:
		return "lognormal:" + text(l.a) + ",p99=" + text(l.b)
	case bimodal:
		return "bimodal:" + text(l.a) + "," + text(l.b) + "@" + strconv.FormatFloat(l.p, 'g', -1, 64)
	case pareto:
		return "pareto:" + text(l.a) + "," + strconv.FormatFloat(l.p, 'g', -1, 64)
	case recorded:
		return "recorded:" + l.rec.name
	}
	return "constant:" + text(l.a)
}

func text(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") { // 1m0s
		s = strings.TrimSuffix(s, "0s")
		if strings.HasSuffix(s, "h0m") {
			s = strings.TrimSuffix(s, "0m")
		}
	}
	return s
}
