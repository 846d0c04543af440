package rule

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Verdict is a server's decision about one request.
type Verdict uint8

const (
	Accepted   Verdict = iota // served
	BadNonce                  // the nonce is not above the key's last: an error that still uses a slot of the limit
	Limited                   // over the limit: uses no slot, and too many of them ban the key
	Banned                    // the key is banned
	UnknownKey                // no such key
	verdicts
)

// Status returns the HTTP status code: 200, 400, 429, 403 or 401.
func (v Verdict) Status() int { return [verdicts]int{200, 400, 429, 403, 401}[v] }

// Counted reports whether the request used a slot of the limit.
func (v Verdict) Counted() bool { return v <= BadNonce }

func (v Verdict) String() string {
	if v >= verdicts {
		return fmt.Sprintf("Verdict(%d)", uint8(v))
	}
	return [verdicts]string{"accepted", "bad nonce", "limited", "banned", "unknown key"}[v]
}

// Counts is the number of requests with each verdict.
type Counts struct{ Accepted, BadNonce, Limited, Banned, UnknownKey int }

func (c *Counts) of(v Verdict) *int {
	return [verdicts]*int{&c.Accepted, &c.BadNonce, &c.Limited, &c.Banned, &c.UnknownKey}[v]
}

// Total returns how many requests there were.
func (c Counts) Total() int { return c.Accepted + c.BadNonce + c.Limited + c.Banned + c.UnknownKey }

// ExchangeConfig is the rule of an exchange. The zero value is the strict one: 20 requests per
// second and key, nonces, and a ban after ten refusals.
type ExchangeConfig struct {
	// Keys is how many keys there are, numbered from 0. If zero, 5.
	Keys int
	// Limit is the most requests per key in a closed window. If zero, 20.
	Limit int
	// Window is a whole number of milliseconds. If zero, 1 s.
	Window time.Duration
	// BanAfter is the number of Limited verdicts after which a key is banned for good. If zero, 10;
	// if negative, never.
	BanAfter int
	// AnyNonce lets every nonce pass.
	AnyNonce bool
}

func (c ExchangeConfig) filled() (ExchangeConfig, error) {
	c.Keys = cmp.Or(c.Keys, 5)
	c.Limit = cmp.Or(c.Limit, 20)
	c.Window = cmp.Or(c.Window, time.Second)
	c.BanAfter = cmp.Or(c.BanAfter, 10)
	var errs []error
	if c.Keys < 0 {
		errs = append(errs, fmt.Errorf("rule: Keys %d is negative", c.Keys))
	}
	if c.Limit < 0 {
		errs = append(errs, fmt.Errorf("rule: Limit %d is negative", c.Limit))
	}
	if c.Window < 0 || c.Window%time.Millisecond != 0 {
		errs = append(errs, fmt.Errorf("rule: Window %v is not a whole number of milliseconds", c.Window))
	}
	return c, errors.Join(errs...)
}

// Exchange decides about requests in the order of their arrival, per key. The first of these cases
// that applies decides:
//
//  1. A key that does not exist: UnknownKey.
//  2. A key that is banned: Banned.
//  3. now − t ≤ Window, where t is the arrival of the Limit-th last request that used a slot:
//     Limited. It uses no slot. The BanAfter-th Limited request bans the key, and is itself still
//     Limited.
//  4. A nonce that is not above that of the last accepted request: BadNonce. It uses a slot.
//  5. Otherwise Accepted: it uses a slot.
//
// Instants are rounded down to the millisecond before they are subtracted, and the window is
// closed. Example: a limit of 20 per second, and 21 requests that use a slot. The last arrives at
// least 1001 ticks of the millisecond clock after the first. A key's first nonce may be any.
//
// Not safe for concurrent use. An Exchange holds 8 bytes per key and slot.
type Exchange struct {
	config ExchangeConfig
	window int64 // in ms
	now    int64 // in ms: the latest arrival
	keys   []account
	total  Counts
}

type account struct {
	slots  []int64 // a ring of the last Limit arrivals that used a slot, in ms
	oldest int
	seen   bool // there was a nonce before
	banned bool
	last   uint64
	digits string // the last nonce, if it does not fit into 64 bits, without leading zeros
	counts Counts
}

// NewExchange returns an exchange that no request has reached.
func NewExchange(c ExchangeConfig) (*Exchange, error) {
	c, err := c.filled()
	if err != nil {
		return nil, err
	}
	x := &Exchange{config: c, window: c.Window.Milliseconds(), now: longAgo, keys: make([]account, c.Keys)}
	slots := make([]int64, c.Keys*c.Limit)
	for i := range slots {
		slots[i] = longAgo
	}
	for i := range x.keys {
		x.keys[i].slots = slots[i*c.Limit : (i+1)*c.Limit]
	}
	return x, nil
}

// longAgo is before every instant by more than any window, in ms.
const longAgo = -1 << 61

// Config returns the configuration with its defaults filled in.
func (x *Exchange) Config() ExchangeConfig { return x.config }

// Arrive decides about a request that reaches the server at now. A now before an earlier one counts
// as that one: the server's clock does not run back.
func (x *Exchange) Arrive(now mono.Time, key int, nonce uint64) Verdict {
	k, v := x.rate(now, key)
	if v == Accepted && !x.config.AnyNonce {
		if k.seen && (k.digits != "" || nonce <= k.last) {
			v = BadNonce
		} else {
			k.seen, k.last = true, nonce
		}
	}
	x.count(k, v)
	return v
}

// ArriveDigits is Arrive for a nonce of any length, in decimal digits. Other characters are a
// BadNonce.
func (x *Exchange) ArriveDigits(now mono.Time, key int, nonce string) Verdict {
	k, v := x.rate(now, key)
	if v == Accepted && !x.config.AnyNonce {
		if n, long, ok := number(nonce); !ok || k.seen && !k.below(n, long) {
			v = BadNonce
		} else {
			k.seen, k.last, k.digits = true, n, long
		}
	}
	x.count(k, v)
	return v
}

// rate makes all decisions except that about the nonce.
func (x *Exchange) rate(now mono.Time, key int) (*account, Verdict) {
	ms := int64(now) / 1e6
	if int64(now) < ms*1e6 { // division rounds towards zero
		ms--
	}
	x.now = max(x.now, ms)
	if uint(key) >= uint(len(x.keys)) {
		return nil, UnknownKey
	}
	k := &x.keys[key]
	switch {
	case k.banned:
		return k, Banned
	case x.now-k.slots[k.oldest] <= x.window:
		return k, Limited
	}
	return k, Accepted
}

func (x *Exchange) count(k *account, v Verdict) {
	*x.total.of(v)++
	if k == nil {
		return
	}
	*k.counts.of(v)++
	switch v {
	case Limited:
		k.banned = k.counts.Limited == x.config.BanAfter
	case Accepted, BadNonce:
		k.slots[k.oldest] = x.now
		if k.oldest++; k.oldest == len(k.slots) {
			k.oldest = 0
		}
	}
}

const largest = "18446744073709551615" // the largest number of 64 bits

// number splits a nonce: it returns n if the nonce fits, and otherwise its digits.
func number(nonce string) (n uint64, digits string, ok bool) {
	if nonce == "" {
		return 0, "", false
	}
	for i := range len(nonce) {
		if nonce[i] < '0' || nonce[i] > '9' {
			return 0, "", false
		}
	}
	for len(nonce) > 1 && nonce[0] == '0' {
		nonce = nonce[1:]
	}
	if len(nonce) > len(largest) || len(nonce) == len(largest) && nonce > largest {
		return 0, string([]byte(nonce)), true // a copy: the nonce may be a small part of a large text
	}
	for i := range len(nonce) {
		n = n*10 + uint64(nonce[i]-'0')
	}
	return n, "", true
}

// below reports whether the key's last nonce is less than this one.
func (k *account) below(n uint64, digits string) bool {
	switch {
	case digits == "":
		return k.digits == "" && k.last < n
	case len(digits) != len(k.digits):
		return len(k.digits) < len(digits)
	}
	return k.digits < digits
}

// Banned reports whether the key is banned. The key must exist.
func (x *Exchange) Banned(key int) bool { return x.keys[key].banned }

// Counts returns the verdicts on the requests of one key, which must exist.
func (x *Exchange) Counts(key int) Counts { return x.keys[key].counts }

// Total returns the verdicts on all requests, those with unknown keys included.
func (x *Exchange) Total() Counts { return x.total }
