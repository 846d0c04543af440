package quota

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// reading is a response under way to an Observation. Its methods turn a header field into a number, a wait or an instant,
// and note as a problem what they cannot.
type reading struct {
	Observation
	Response
	refusers []Refuser
	// now is the caller's clock, clock the server's at the same instant.
	now, clock time.Time
	// far is the server's Date if it is so far away that either clock may be nonsense: an instant is read by the one that it fits.
	far    time.Time
	whole  bool // the body is all there
	tree   any  // the JSON of the body, once it was parsed
	parsed bool
	// alsoCalled are the policies of a field by names that are not theirs alone.
	alsoCalled map[string][]string
	other      bool // its status refuses, and yet it is no limit's
	looked     *looked
}

// maxSkew is how far apart the clocks may be before the server's Date is used to read its instants. Date has no fraction:
// below that it would spoil the reading of two clocks that agree.
const maxSkew = 2 * time.Second

func newReading(d *row, now time.Time, resp Response) *reading {
	r := &reading{Response: resp, refusers: d.Refusers, now: now, clock: now, whole: len(resp.Body) <= MaxBody}
	r.Dialect = d.Provider.Name
	r.Body = resp.Body[:min(len(resp.Body), MaxBody)]
	if date, err := http.ParseTime(r.Header.Get("Date")); err == nil {
		switch skew := date.Sub(now); {
		case skew.Abs() > MaxWait: // one of the two says nothing
			r.far = date
		case skew.Abs() > maxSkew:
			r.clock = date
			r.note("the server's clock is %v %s ours; its instants are read by its own", skew.Abs().Round(time.Second), map[bool]string{true: "ahead of", false: "behind"}[skew > 0])
		}
	}
	return r
}

// field returns the value of a header field and whether it is there.
func (r *reading) field(name string) (string, bool) {
	r.looked.at(name)
	v := strings.TrimSpace(r.Header.Get(name))
	return v, v != ""
}

func (r *reading) has(name string) bool { _, ok := r.field(name); return ok }

// count reads a whole number that is not negative. Where servers write 99.0 it is 99: rounding down is safe.
func (r *reading) count(name string) Count {
	v, ok := r.field(name)
	if !ok {
		return Count{}
	}
	return r.number(name, v)
}

func (r *reading) number(name, v string) Count {
	if thousands(v) {
		v = strings.ReplaceAll(v, ",", "")
	}
	f, err := strconv.ParseFloat(v, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(f):
		r.problem("%s: %q is not a number; ignored", name, clip(v))
		return Count{}
	case f < 0:
		r.problem("%s: %q is negative; ignored", name, clip(v))
		return Count{}
	case f > MaxCount:
		r.problem("%s: %q is read as %d", name, clip(v), int64(MaxCount))
		return Count{MaxCount, true}
	}
	return Count{int64(f), true}
}

// thousands tells whether the commas of a number are between thousands: 30,000.
func thousands(v string) bool {
	groups := strings.Split(v, ",")
	for i, g := range groups {
		if strings.Trim(g, "0123456789") != "" || i > 0 && len(g) != 3 || i == 0 && (len(g) == 0 || len(g) > 3) {
			return false
		}
	}
	return len(groups) > 1
}

// limit reads how much a policy allows. Zero allows nothing forever, which no server means.
func (r *reading) limit(name string) Count {
	c := r.count(name)
	if c.OK && c.N == 0 {
		r.problem("%s: 0 is no limit; ignored", name)
		return Count{}
	}
	return c
}

var (
	errNumber   = errors.New("is not a number of seconds")
	errNegative = errors.New("is negative")
)

// seconds reads a decimal number of seconds, rounded up to the nanosecond. What is too large for a Duration is MaxWait and a
// nanosecond, which whoever bounds it sees.
func seconds(v string) (time.Duration, error) { return scaled(v, time.Second) }

func scaled(v string, unit time.Duration) (time.Duration, error) {
	f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(f):
		return 0, errNumber
	case f < 0:
		return 0, errNegative
	}
	if f *= float64(unit); f <= float64(MaxWait) {
		// 64.57 s is a hair more than 64,570 ms in binary, and no nanosecond more for it.
		return time.Duration(math.Ceil(f - f*1e-15)), nil
	}
	return MaxWait + 1, nil
}

// span reads a duration as Go writes it, with days: 6m0s, 12ms, 23h47m36.648s, 1d2h.
func span(v string) (time.Duration, error) {
	v = strings.TrimSpace(v)
	var days time.Duration
	if d, rest, ok := strings.Cut(v, "d"); ok {
		n, err := strconv.ParseUint(d, 10, 16)
		if err != nil {
			return 0, errors.New("is not a duration")
		}
		days, v = time.Duration(n)*24*time.Hour, rest
		if v == "" {
			return min(days, MaxWait+1), nil
		}
	}
	d, err := time.ParseDuration(v)
	switch {
	case err != nil || v == "0":
		return 0, errors.New("is not a duration")
	case d < 0:
		return 0, errNegative
	}
	return min(days+min(d, MaxWait+1), MaxWait+1), nil
}

// bound keeps a wait within MaxWait.
func (r *reading) bound(name, v string, d time.Duration, err error) (time.Duration, bool) {
	switch {
	case err != nil:
		r.problem("%s: %q %v; ignored", name, clip(v), err)
		return 0, false
	case d > MaxWait:
		r.problem("%s: %q is longer than %v; read as that", name, clip(v), days(MaxWait))
		return MaxWait, true
	}
	return d, true
}

func days(d time.Duration) string { return fmt.Sprintf("%d days", d/(24*time.Hour)) }

// names returns those of the fields that begin like this, in order. The prefix is in canonical form.
func (r *reading) names(prefix string) []string {
	r.looked.at(prefix + "*")
	var all []string
	for name := range r.Header {
		if name := http.CanonicalHeaderKey(name); strings.HasPrefix(name, prefix) {
			all = append(all, name)
		}
	}
	return order(all, func(s string) string { return s })[:min(len(all), maxItems)]
}

// rate reads a number per second, and returns how long one takes.
func rate(v string) (time.Duration, error) {
	f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
	if err != nil || !(f > 0) {
		return 0, errors.New("is no number per second")
	}
	if d := math.Ceil(float64(time.Second) / f); d <= float64(MaxWait) {
		return time.Duration(max(d, 1)), nil
	}
	return MaxWait + 1, nil
}

// worked reads for how many milliseconds the server worked.
func (r *reading) worked(name string) {
	v, ok := r.field(name)
	if !ok {
		return
	}
	d, err := scaled(v, time.Millisecond)
	if err != nil {
		err = errors.New(strings.Replace(err.Error(), "of seconds", "of milliseconds", 1))
	}
	r.Worked, _ = r.bound(name, v, d, err)
}

// instant moves an instant of the server's clock onto ours, and into the span that a reading may have.
func (r *reading) instant(name, v string, t time.Time) time.Time {
	d := t.Sub(r.clock) // saturates
	if f := t.Sub(r.far); !r.far.IsZero() && (d < -5*time.Second || d > MaxWait) && f >= -5*time.Second && f <= MaxWait {
		d = f
	}
	switch {
	case d < 0:
		// Servers cut instants to the second, and an answer takes its time: that much in the past is no news.
		if d < -5*time.Second {
			r.problem("%s: %q is in the past; read as now", name, clip(v))
		}
		d = 0
	case d > MaxWait:
		r.problem("%s: %q is more than %s away; read as that", name, clip(v), days(MaxWait))
		d = MaxWait
	}
	return r.now.Add(d)
}

// retryAfter reads Retry-After as RFC 9110 has it, seconds or a date, and the milliseconds that some send besides: those are
// finer, so they go first. A fraction of a second is no RFC's, but sent.
func (r *reading) retryAfter() {
	for _, name := range [...]string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if v, ok := r.field(name); ok {
			d, err := scaled(v, time.Millisecond)
			if d, ok := r.bound(name, v, d, err); ok {
				r.RetryAfter = d
				r.looked.at("Retry-After") // it says the same, in seconds
				return
			}
		}
	}
	v, ok := r.field("Retry-After")
	if !ok {
		return
	}
	if date, err := http.ParseTime(v); err == nil {
		// Both dates have no fraction, and so their difference has no error, however little the clocks are apart.
		if clock, err := http.ParseTime(r.Header.Get("Date")); err == nil && clock.Sub(r.now).Abs() <= MaxWait {
			defer func(clock time.Time) { r.clock = clock }(r.clock)
			r.clock = clock
		}
		r.RetryAfter = r.instant("Retry-After", v, date).Sub(r.now)
		return
	}
	if t := r.moment("Retry-After", v, 0); !t.IsZero() {
		r.RetryAfter = t.Sub(r.now)
	}
}

// orRetryAfter takes a wait from a body, where no header asked for one.
func (r *reading) orRetryAfter(name, v string, d time.Duration, err error) {
	if d, ok := r.bound(name, v, d, err); ok && r.RetryAfter == 0 {
		r.RetryAfter = d
	}
}

// object decodes the body, if it is the JSON of an object. A body that is no JSON is a page of some proxy; JSON that ends in
// its middle is a problem.
func (r *reading) object(v any) bool {
	body := strings.TrimSpace(string(r.Body))
	if !strings.HasPrefix(body, "{") && !strings.HasPrefix(body, "[") {
		return false
	}
	err := json.Unmarshal([]byte(body), v)
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return true
	case errors.As(err, &kind):
		// The rest is decoded: a field of another type than expected is not read, like one that is not there.
		return true
	case !r.whole:
		r.problem("body: longer than %d KiB; not read", MaxBody>>10)
	default:
		r.problem("body: %s", clip(strings.TrimPrefix(err.Error(), "json: ")))
	}
	return false
}

// byStatus is what a status means where the server says no more.
func (r *reading) byStatus() Refusal {
	switch r.Status {
	case http.StatusTooManyRequests:
		return RateLimited
	case http.StatusForbidden:
		if r.has("Retry-After") {
			return RateLimited
		}
	case http.StatusServiceUnavailable, 529:
		return Overloaded
	}
	return None
}

// by records what refused. A name that the dialect does not list is left out, so that whoever looks names up knows all.
func (r *reading) by(name string) {
	name = clip(name)
	if !slices.ContainsFunc(r.refusers, func(f Refuser) bool { return f.Pattern.Match(name) }) {
		r.problem("refused by %q, which is no name that the dialect %s knows; ignored", name, r.Dialect)
		return
	}
	r.RefusedBy = append(r.RefusedBy, name)
}

// refuse sets the reason unless a better one is known.
func (r *reading) refuse(why Refusal) {
	if r.Refusal == None {
		r.Refusal = why
	}
}

// add records a policy and what is left of it. What the server says nothing of is left out.
func (r *reading) add(p Policy, l ServiceLimit) {
	l.Policy, l.Unit, l.Scope = p.Name, p.Unit, p.Scope
	l.Whole = l.Whole && !l.Reset.IsZero()
	if p.Limit > 0 && p.Source == Stated && l.Remaining.OK && l.Remaining.N > max(p.Limit, p.Burst) {
		r.problem("%d remain of a limit of %d; read as all of it", l.Remaining.N, max(p.Limit, p.Burst))
		l.Remaining.N = max(p.Limit, p.Burst)
	}
	if p.Limit > 0 || p.Window > 0 && (l.Used.OK || l.Remaining.OK) {
		r.Policies = append(r.Policies, p)
	}
	if l.Remaining.OK || l.Used.OK || !l.Reset.IsZero() {
		r.Limits = append(r.Limits, l)
	}
}

// triple reads a limit, what remains of it and its reset from fields that differ in their last word.
func (r *reading) triple(p Policy, limit, remaining string, reset time.Time) {
	p.Limit = r.limit(limit).N
	r.add(p, ServiceLimit{Remaining: r.count(remaining), Reset: reset})
}
