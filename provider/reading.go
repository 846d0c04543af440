package provider

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

// reading is a response that is being read into an Observation. Its methods turn a header field
// into a number, a wait or an instant. They note a problem if they cannot.
type reading struct {
	Observation
	Response
	refusers []Refuser
	// now is an instant of the caller's clock, and clock the same instant of the server's.
	now, clock time.Time
	// far is the server's Date if it is so far away that one of the clocks may be wrong. Each
	// instant is then read by the clock that it fits.
	far    time.Time
	whole  bool // the whole body is there
	tree   any  // the JSON of the body, once it has been parsed
	parsed bool
	// alsoCalled has the policies of a field by names that several of them may have.
	alsoCalled map[string][]string
	other      bool // the status looks like a refusal, but not by a limit
	looked     *looked
}

// maxSkew is the largest difference of the clocks at which the server's Date is not used. Date has
// no fraction, so with clocks that agree it would make the reading worse.
const maxSkew = 2 * time.Second

func newReading(d *row, now time.Time, resp Response) *reading {
	r := &reading{Response: resp, refusers: d.Refusers, now: now, clock: now, whole: len(resp.Body) <= MaxBody}
	r.Dialect = d.Provider.Name
	r.Body = resp.Body[:min(len(resp.Body), MaxBody)]
	if date, ok := date(r.Header.Get("Date")); ok {
		switch skew := date.Sub(now); {
		case skew.Abs() > MaxWait: // one of the two must be wrong
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

// count reads a whole number that is not negative. 99.0 is 99: rounding down is safe.
func (r *reading) count(name string) Count {
	v, ok := r.field(name)
	if !ok {
		return Count{}
	}
	return r.number(name, v)
}

func (r *reading) number(name, v string) Count {
	if strings.Contains(v, ",") && thousands(v) {
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

// thousands reports whether the commas of a number separate thousands: 30,000.
func thousands(v string) bool {
	groups := strings.Split(v, ",")
	for i, g := range groups {
		if strings.Trim(g, "0123456789") != "" || i > 0 && len(g) != 3 || i == 0 && (len(g) == 0 || len(g) > 3) {
			return false
		}
	}
	return len(groups) > 1
}

// limit reads how much a policy allows. Zero would allow nothing for ever, which no server means.
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

// seconds reads a decimal number of seconds, rounded up to the nanosecond. If it is too large for a
// Duration, the result is a nanosecond more than MaxWait, and so out of bounds.
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
		return ceil(f), nil
	}
	return MaxWait + 1, nil
}

// ceil rounds nanoseconds up. In binary, 64.57 s is a hair more than 64,570 ms. It must not become a
// nanosecond more, and a wait of weeks must not become shorter.
func ceil(ns float64) time.Duration { return time.Duration(math.Ceil(ns - min(ns*1e-15, 0.5))) }

// goDuration reads a duration as Go writes it, with days: 6m0s, 12ms, 23h47m36.648s, 1d2h.
func goDuration(v string) (time.Duration, error) {
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

// names returns the fields that begin with the prefix, in order. The prefix must be in canonical
// form.
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

// rate reads a number per second, and returns how long one of them takes.
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

// worked reads for how many milliseconds the server worked on the request.
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

// instant converts an instant of the server's clock to ours, within the span that a reading may
// have.
func (r *reading) instant(name, v string, t time.Time) time.Time {
	d := t.Sub(r.clock) // this saturates
	if f := t.Sub(r.far); !r.far.IsZero() && (d < -5*time.Second || d > MaxWait) && f >= -5*time.Second && f <= MaxWait {
		d = f
	}
	switch {
	case d < 0:
		// Servers cut off fractions of a second, and an answer takes its time. An instant that is
		// so little in the past is no problem.
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

// retryAfter reads Retry-After as RFC 9110 defines it, in seconds or as a date, and in the other
// forms that servers send: a fraction, a duration, words, several values. Of several the longest
// counts. Some servers send milliseconds too, which are finer and so preferred, unless they differ.
func (r *reading) retryAfter() {
	var finer time.Duration
	for _, name := range [...]string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if v, ok := r.field(name); ok && finer == 0 {
			d, err := scaled(v, time.Millisecond)
			if d, ok := r.bound(name, v, d, err); ok {
				finer = d
			}
		}
	}
	const name = "Retry-After"
	r.looked.at(name)
	for _, v := range r.Header.Values(name) {
		if v = strings.TrimSpace(v); v == "" {
			continue
		}
		all := []string{v}
		if list := strings.Split(v, ","); len(list) > 1 && len(list) <= maxItems && !slices.ContainsFunc(list, notWait) {
			all = list
		}
		for _, v := range all {
			if t := r.retryAt(name, strings.Trim(v, ` "`)); !t.IsZero() {
				r.RetryAfter = max(r.RetryAfter, t.Sub(r.now))
			}
		}
	}
	if finer > 0 && r.RetryAfter <= finer+time.Second {
		r.RetryAfter = finer
	}
}

// notWait reports whether a part of a list is no wait of its own, but half a date.
func notWait(v string) bool {
	_, err := seconds(strings.Trim(v, ` "`))
	return err == errNumber
}

// retryAt reads a value of Retry-After.
func (r *reading) retryAt(name, v string) time.Time {
	if t, ok := date(v); ok {
		// Neither date has a fraction, so their difference has no error, however close the clocks
		// are.
		if clock, ok := date(r.Header.Get("Date")); ok && clock.Sub(r.now).Abs() <= MaxWait {
			defer func(clock time.Time) { r.clock = clock }(r.clock)
			r.clock = clock
		}
		return r.instant(name, v, t)
	}
	return r.moment(name, v, 0)
}

// orRetryAfter takes a wait from a body if no header asked for one.
func (r *reading) orRetryAfter(name, v string, d time.Duration, err error) {
	if d, ok := r.bound(name, v, d, err); ok && r.RetryAfter == 0 {
		r.RetryAfter = d
	}
}

// object decodes the body if it is a JSON object. A body that is not JSON is the page of a proxy;
// JSON that breaks off is a problem.
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
		// The rest is decoded: a field of an unexpected type counts as missing.
		return true
	case !r.whole:
		r.problem("body: longer than %d KiB; not read", MaxBody>>10)
	default:
		r.problem("body: %s", clip(strings.TrimPrefix(err.Error(), "json: ")))
	}
	return false
}

// byStatus returns the meaning of a status if the server states no more.
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
	case http.StatusPaymentRequired:
		return Unpaid
	}
	return None
}

// by records the policy that refused. It leaves out names that the dialect does not list, so that
// every recorded name can be looked up.
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

// add records a policy and what is left of it, as far as the server states either.
func (r *reading) add(p Policy, l ServiceLimit) {
	l.Policy, l.Unit, l.Scope = p.Name, p.Unit, p.Scope
	l.Whole = l.Whole && !l.Reset.IsZero()
	if p.Limit > 0 && p.Source == Stated && l.Remaining.OK && l.Remaining.N > max(p.Limit, p.Burst) {
		r.problem("%d remain of a limit of %d; read as all of it", l.Remaining.N, max(p.Limit, p.Burst))
		l.Remaining.N = max(p.Limit, p.Burst)
	}
	// Crossref states it under two names.
	if (p.Limit > 0 || p.Window > 0 && (l.Used.OK || l.Remaining.OK)) && !slices.Contains(r.Policies, p) {
		r.Policies = append(r.Policies, p)
	}
	if l.Remaining.OK || l.Used.OK || !l.Reset.IsZero() {
		r.Limits = append(r.Limits, l)
	}
}
