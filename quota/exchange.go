package quota

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Binance says what is used, of windows that its field names give: X-MBX-USED-WEIGHT-1M, X-MBX-ORDER-COUNT-10S. Weight is an
// address's, orders are an account's; the intervals are those of the clock. 429 says stop, 418 that the address is banned,
// for two minutes to three days.
// https://developers.binance.com/docs/binance-spot-api-docs/rest-api/limits
//
// How much is allowed it does not say, and its markets differ; binance-spot and binance-futures know what is documented.
var binance = &dialect{
	name:  "binance",
	hosts: []string{"dapi.binance.com", "eapi.binance.com", "papi.binance.com"},
	is: func(r *Response) bool {
		return sendsPrefix(r.Header, "X-Mbx-") || sendsPrefix(r.Header, "X-Sapi-Used-") || mentions(r, "IP banned until")
	},
	read: func(r *reading) { r.binance(nil) },
}

var binanceSpot = &dialect{
	name:  "binance-spot",
	hosts: []string{"api.binance.com", "api1.binance.com", "api2.binance.com", "api3.binance.com", "api4.binance.com", "api-gcp.binance.com", "data-api.binance.vision"},
	read:  func(r *reading) { r.binance(documented("binance")) },
}

var binanceFutures = &dialect{
	name:  "binance-futures",
	hosts: []string{"fapi.binance.com"},
	read:  func(r *reading) { r.binance(documented("binance:futures")) },
}

func (r *reading) binance(known []Policy) {
	var names []string
	for name := range r.Header {
		if name := http.CanonicalHeaderKey(name); strings.HasPrefix(name, "X-Mbx-") || strings.HasPrefix(name, "X-Sapi-Used-") {
			names = append(names, name)
		}
	}
	for _, name := range order(names, func(s string) string { return s })[:min(len(names), maxItems)] {
		i := strings.LastIndexByte(name, '-')
		window, ok := interval(name[i+1:])
		if !ok {
			continue // X-Mbx-Used-Weight says the same as X-Mbx-Used-Weight-1m, X-Mbx-Uuid is something else
		}
		p := Policy{Name: strings.ToLower(name), Rule: Calendar, Window: window}
		switch {
		case strings.HasPrefix(name, "X-Mbx-Used-Weight"), strings.HasPrefix(name, "X-Sapi-Used-Ip-Weight"):
			p.Unit, p.Scope = Weight, IP
		case strings.HasPrefix(name, "X-Sapi-Used-Uid-Weight"):
			p.Unit, p.Scope = Weight, Key
		case strings.HasPrefix(name, "X-Mbx-Order-Count"):
			p.Unit, p.Scope = Orders, Key
		default:
			continue
		}
		l := ServiceLimit{Used: r.count(name), Whole: true}
		for _, k := range known {
			if k.Unit == p.Unit && k.Window == p.Window && !strings.HasPrefix(name, "X-Sapi-") {
				p.Limit, p.Source = k.Limit, Documented
				if l.Used.OK {
					l.Remaining = Count{max(0, k.Limit-l.Used.N), true}
				}
			}
		}
		if l.Used.OK {
			// The next interval of the server's clock.
			l.Reset = r.now.Add(r.clock.Truncate(window).Add(window).Sub(r.clock))
		}
		r.add(p, l)
	}
	switch r.Status {
	case http.StatusTooManyRequests:
		r.refuse(RateLimited)
	case http.StatusTeapot:
		r.refuse(Banned)
	default:
		return
	}
	var body struct {
		Code int    `json:"code"`
		Msg  string `json:"msg"`
	}
	if !r.object(&body) {
		return
	}
	if _, until, ok := strings.Cut(body.Msg, "banned until "); ok {
		r.Refusal = Banned
		until, _, _ = strings.Cut(until, " ")
		until = strings.TrimRight(until, ".")
		if t, err := epochMS(until); err == nil && r.RetryAfter == 0 {
			r.RetryAfter = r.instant("body", until, t).Sub(r.now)
		}
	}
}

// interval reads Binance's: a number and one of s, m, h, d.
func interval(s string) (time.Duration, bool) {
	if s == "" {
		return 0, false
	}
	n, err := strconv.ParseUint(s[:len(s)-1], 10, 16)
	if err != nil || n == 0 {
		return 0, false
	}
	unit := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[s[len(s)-1]|0x20]
	d := time.Duration(n) * unit
	return d, unit > 0 && d <= MaxWait
}

// Bybit says what remains for the endpoint, and when there will be more; while it did not refuse, that is just its clock. 403
// is the ban of an address, for ten minutes at least.
// https://bybit-exchange.github.io/docs/v5/rate-limit
var bybit = &dialect{
	name:     "bybit",
	inBody:   true,
	refusers: []Pattern{"address"},
	hosts:    []string{"api.bybit.com", "api.bytick.com", ".bybit.com"},
	is:       func(r *Response) bool { return sendsPrefix(r.Header, "X-Bapi-Limit") },
	read: func(r *reading) {
		var body struct {
			Code    any    `json:"retCode"`
			OldCode any    `json:"ret_code"`
			Message string `json:"retMsg"`
		}
		r.object(&body)
		code, ok := body.Code.(float64)
		if !ok {
			code, _ = body.OldCode.(float64)
		}
		over := code == 10006 || code == 10018
		var reset time.Time
		if over || r.Status == http.StatusTooManyRequests {
			reset = r.at("X-Bapi-Limit-Reset-Timestamp", epochMS)
		}
		p := Policy{Unit: Requests, Scope: Route, Rule: Rolling, Limit: r.limit("X-Bapi-Limit").N}
		r.add(p, ServiceLimit{Remaining: r.count("X-Bapi-Limit-Status"), Reset: reset})
		switch {
		case code == 10006:
			r.refuse(RateLimited)
		case code == 10018:
			r.refuse(RateLimited)
			r.by("address")
		case r.Status == http.StatusForbidden && !mentions(&r.Response, "from your country"):
			r.refuse(Banned)
			if r.RetryAfter == 0 {
				r.RetryAfter = 10 * time.Minute
				r.note("the server does not say how long; its documentation says ten minutes at least")
			}
		}
	},
}

// Kraken says nothing of what is left and refuses with 200: the errors of the body tell. A counter goes up by one or two per
// call and down by a third to one per second, by tier. Nonces must rise per key.
// https://docs.kraken.com/api/docs/guides/spot-rest-ratelimits
var kraken = &dialect{
	name:   "kraken",
	inBody: true,
	// As the server writes them: EOrder is what counts per pair, EService what all of it is.
	refusers: []Pattern{"EOrder:*", "EAPI:*", "EGeneral:*", "EService:*", "*"},
	hosts:    []string{"api.kraken.com"},
	is: func(r *Response) bool {
		return mentions(r, `"EAPI:`) || mentions(r, `"EGeneral:`) || mentions(r, `"EService:`) || mentions(r, `"EOrder:`)
	},
	read: func(r *reading) {
		var body struct {
			Errors []string `json:"error"`
		}
		if !r.object(&body) {
			return
		}
		for _, e := range body.Errors {
			class, what, _ := strings.Cut(e, ":")
			what = strings.TrimSpace(what)
			switch {
			case class == "EService" && strings.HasPrefix(what, "Throttled"):
				r.refuse(TooMany)
				_, until, _ := strings.Cut(what, ":")
				if until = strings.TrimSpace(until); until == "" {
					break
				}
				if t, err := epoch(until); err != nil {
					r.problem("error: %q %v; ignored", clip(until), err)
				} else if r.RetryAfter == 0 {
					r.RetryAfter = r.instant("error", until, t).Sub(r.now)
				}
			case what == "Rate limit exceeded", what == "Too many requests":
				r.refuse(RateLimited)
			case what == "Orders limit exceeded", what == "Positions limit exceeded":
				r.refuse(TooMany) // orders that are open
			case what == "Temporary lockout":
				r.refuse(Banned)
				r.note("the key is locked for about 15 minutes; each further call makes it longer")
				if r.RetryAfter == 0 {
					r.RetryAfter = 15 * time.Minute
				}
			case what == "Invalid nonce":
				r.refuse(Misordered)
			case class == "EService" && (what == "Unavailable" || what == "Busy"):
				r.refuse(Overloaded)
			default:
				continue
			}
			r.by(e)
		}
	},
}

// Coinbase says nothing of what is left: 429, with a message that tells public from private limits, or a page.
// https://docs.cdp.coinbase.com/exchange/rest-api/rate-limits
var coinbase = &dialect{
	name:     "coinbase",
	refusers: []Pattern{"address", "key"},
	hosts:    []string{"api.coinbase.com", "api.exchange.coinbase.com", "api.pro.coinbase.com", "api-public.sandbox.exchange.coinbase.com"},
	is: func(r *Response) bool {
		return r.Status == http.StatusTooManyRequests && (mentions(r, "ublic rate limit exceeded") || mentions(r, "rivate rate limit exceeded") || mentions(r, "<title>Coinbase"))
	},
	read: func(r *reading) {
		var body struct {
			Message string `json:"message"`
			Errors  []struct {
				ID string `json:"id"`
			} `json:"errors"`
		}
		if r.Status != http.StatusTooManyRequests || !r.object(&body) {
			return
		}
		r.refuse(RateLimited)
		switch m := strings.ToLower(body.Message); {
		case strings.HasPrefix(m, "public"):
			r.by("address")
		case strings.HasPrefix(m, "private"), strings.HasPrefix(m, "slow"):
			r.by("key")
		}
	},
}

// OKX says nothing of what is left. Code 50011 is a limit of an endpoint, per user and instrument; 50061 one of orders of a
// sub-account; windows are mostly two seconds. Busy servers answer 429 as well.
// https://www.okx.com/docs-v5/en/#overview-rate-limits
var okx = &dialect{
	name:     "okx",
	inBody:   true,
	refusers: []Pattern{"endpoint", "sub-account orders"},
	hosts:    []string{"www.okx.com", "okx.com", "my.okx.com", "eea.okx.com", "us.okx.com", "aws.okx.com"},
	is: func(r *Response) bool {
		return mentions(r, `"code":"50011"`) || mentions(r, `"code":50011`) || mentions(r, `"code":"50061"`)
	},
	read: func(r *reading) {
		var body struct {
			Code any `json:"code"`
		}
		if !r.object(&body) {
			return
		}
		code, _ := body.Code.(string)
		if n, ok := body.Code.(float64); ok {
			code = formatFloat(n)
		}
		switch code {
		case "50011":
			r.refuse(RateLimited)
			r.by("endpoint")
		case "50061":
			r.refuse(RateLimited)
			r.by("sub-account orders")
		case "50001", "50013", "50026":
			r.refuse(Overloaded)
		}
	},
}

func formatFloat(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
