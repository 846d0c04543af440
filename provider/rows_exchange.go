package provider

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

func exchanges() []*row {
	return []*row{
		binance(), binanceSpot(), binanceFutures(), bybit(), kraken(), okx(), coinbase(), bitfinex(), deribit(), alpaca(), etherscan(), cme(),
	}
}

// Binance states the usage of windows whose lengths are in the names of its fields:
// X-MBX-USED-WEIGHT-1M, X-MBX-ORDER-COUNT-10S. Weight is counted per address, orders per account;
// the intervals are those of the clock. 429 means stop; 418 is a ban of the address, for two
// minutes to three days.
//
// It does not state how much is allowed, and its markets differ; binance-spot and binance-futures
// have the documented limits.
func binance() *row {
	return &row{
		Provider: Provider{
			Name: "binance", Title: "Binance",
			SDKs:  []Pattern{"binance.exceptions.*"},
			Hosts: []string{"dapi.binance.com", "eapi.binance.com", "papi.binance.com"},
			Docs:  "https://developers.binance.com/docs/binance-spot-api-docs/rest-api/limits", AsOf: "2026",
			Limited: IP, Banned: IP,
		},
		is: func(r *Response) bool {
			return sendsPrefix(r.Header, "X-Mbx-") || sendsPrefix(r.Header, "X-Sapi-Used-") || mentions(r, "IP banned until")
		},
		read: func(r *reading) { r.binance(nil) },
	}
}

func binanceSpot() *row {
	return &row{
		Provider: Provider{
			Name: "binance-spot", Title: "Binance spot",
			Hosts: []string{"api.binance.com", "api1.binance.com", "api2.binance.com", "api3.binance.com", "api4.binance.com", "api-gcp.binance.com", "data-api.binance.vision"},
			Docs:  "https://developers.binance.com/docs/binance-spot-api-docs/rest-api/limits", AsOf: "2026",
			Limited: IP, Banned: IP,
			Published: []Preset{
				// Weight per address; orders per account. GET /api/v3/exchangeInfo states the same
				// as rateLimits.
				{"binance", "spot", "https://developers.binance.com/docs/binance-spot-api-docs/rest-api/limits", "2026",
					[]Policy{per(6000, Weight, time.Minute, Calendar, IP), per(100, Orders, 10*time.Second, Calendar, Key), named("orders per day", per(200_000, Orders, day, Calendar, Key))}},
			},
		},
		read: func(r *reading) { r.binance(documented("binance")) },
	}
}

func binanceFutures() *row {
	return &row{
		Provider: Provider{
			Name: "binance-futures", Title: "Binance futures",
			Hosts: []string{"fapi.binance.com"},
			Docs:  "https://developers.binance.com/docs/derivatives/usds-margined-futures/general-info", AsOf: "2026",
			Limited: IP, Banned: IP,
			Published: []Preset{
				{"binance:futures", "USDⓈ-M futures", "https://developers.binance.com/docs/derivatives/usds-margined-futures/general-info", "2026",
					[]Policy{per(2400, Weight, time.Minute, Calendar, IP), per(300, Orders, 10*time.Second, Calendar, Key), named("orders per minute", per(1200, Orders, time.Minute, Calendar, Key))}},
			},
		},
		read: func(r *reading) { r.binance(documented("binance:futures")) },
	}
}

func (r *reading) binance(known []Policy) {
	for _, name := range []string{"X-MBX-Used-Weight-*", "X-MBX-Order-Count-*", "X-SAPI-Used-*"} {
		r.looked.at(name)
	}
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
			l.Reset = r.next(window)
		}
		r.add(p, l)
	}
	switch r.Status {
	case http.StatusTooManyRequests:
		r.refuse(RateLimited)
	case http.StatusTeapot:
		r.refuse(Banned)
		r.Sure = true
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
		r.Sure = true // each request that is sent meanwhile makes the ban longer
		until, _, _ = strings.Cut(until, " ")
		until = strings.TrimRight(until, ".")
		if t := r.moment("body", until, 0); !t.IsZero() && r.RetryAfter == 0 {
			r.RetryAfter = t.Sub(r.now)
		}
	}
}

// interval reads an interval as Binance writes it: a number and one of s, m, h, d.
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

// Bybit states what remains for the endpoint, and when there will be more. In an answer that is no
// refusal, that instant is just its clock. 403 is the ban of an address, for ten minutes at least.
func bybit() *row {
	return &row{
		Provider: Provider{
			Name: "bybit", Title: "Bybit",
			Hosts: []string{"api.bybit.com", "api.bytick.com", ".bybit.com"},
			Docs:  "https://bybit-exchange.github.io/docs/v5/rate-limit", AsOf: "2026",
			Limited: Route, Banned: IP, Refusers: []Refuser{{"address", IP}},
			Published: []Preset{
				{"bybit", "v5, per address; endpoints have limits of their own", "https://bybit-exchange.github.io/docs/v5/rate-limit", "2026",
					[]Policy{per(600, Requests, 5*time.Second, Rolling, IP)}},
			},
		},
		inBody: true,
		is:     func(r *Response) bool { return sendsPrefix(r.Header, "X-Bapi-Limit") },
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
			r.looked.at("X-Bapi-Limit-Reset-Timestamp") // this is its clock, unless it refuses
			if over || r.Status == http.StatusTooManyRequests {
				reset = r.reset("X-Bapi-Limit-Reset-Timestamp", 0)
			}
			p := Policy{Unit: Requests, Scope: Route, Rule: Rolling, Limit: r.limit("X-Bapi-Limit").N}
			r.add(p, ServiceLimit{Remaining: r.count("X-Bapi-Limit-Status"), Reset: reset})
			switch {
			case code == 10006:
				r.refuse(RateLimited)
			case code == 10018:
				r.refuse(RateLimited)
				r.by("address")
			case r.Status == http.StatusForbidden && !mentions(&r.Response, "from your country") && !mentions(&r.Response, "Bad request."):
				// The content network in front has its own pages, for a country and for a malformed
				// request: waiting helps neither.
				r.refuse(Banned)
				if r.RetryAfter == 0 {
					r.RetryAfter = 10 * time.Minute
					r.note("the server does not say how long; its documentation says ten minutes at least")
				}
			}
		},
	}
}

// Kraken states nothing of what is left, and refuses with status 200: only the errors in the body
// show it. A counter goes up by one or two per call and down by a third to one per second,
// depending on the tier. Nonces must rise per key.
func kraken() *row {
	return &row{
		Provider: Provider{
			Name: "kraken", Title: "Kraken",
			Hosts: []string{"api.kraken.com"},
			Docs:  "https://docs.kraken.com/exchange/guides/rest/ratelimits", AsOf: "2026-11",
			Silent: true, Limited: Key, Banned: Key, Refusers: []Refuser{{"EOrder:*", Route}, {"EAPI:*", Key}, {"EGeneral:*", Key}, {"EService:*", Key}, {"*", ""}},
			Published: []Preset{
				// A counter of at most 15 or 20 that goes down by 0.33, 0.5 or 1 per second; most
				// calls count 1, histories 2.
				{"kraken:starter", "spot REST, per key", "https://docs.kraken.com/exchange/guides/rest/ratelimits", "2026-11",
					[]Policy{bucket(15, 33, Weight, 100*time.Second, Key)}},
				{"kraken:intermediate", "spot REST, per key", "https://docs.kraken.com/exchange/guides/rest/ratelimits", "2026-11",
					[]Policy{bucket(20, 1, Weight, 2*time.Second, Key)}},
				{"kraken:pro", "spot REST, per key", "https://docs.kraken.com/exchange/guides/rest/ratelimits", "2026-11",
					[]Policy{bucket(20, 1, Weight, time.Second, Key)}},
			},
		},
		inBody: true,
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
					if t := r.moment("error", until, 0); !t.IsZero() && r.RetryAfter == 0 {
						r.RetryAfter = t.Sub(r.now)
					}
				case what == "Rate limit exceeded", what == "Too many requests":
					r.refuse(RateLimited)
				case what == "Orders limit exceeded", what == "Positions limit exceeded":
					r.refuse(TooMany) // orders that are open
				case what == "Temporary lockout":
					r.refuse(Banned)
					r.note("the key is locked for about 15 minutes; each further call makes it longer")
					r.Sure = true
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
}

// Coinbase states nothing of what is left. It answers 429 with a message, which names public or
// private limits, or with a page.
func coinbase() *row {
	return &row{
		Provider: Provider{
			Name: "coinbase", Title: "Coinbase",
			Hosts: []string{"api.coinbase.com", "api.exchange.coinbase.com", "api.pro.coinbase.com", "api-public.sandbox.exchange.coinbase.com"},
			Docs:  "https://docs.cdp.coinbase.com/exchange/rest-api/rate-limits", AsOf: "2026",
			Silent: true, Limited: Key, Banned: Key, Refusers: []Refuser{{"address", IP}, {"key", Key}},
			Published: []Preset{
				{"coinbase", "Exchange, private endpoints, per profile", "https://docs.cdp.coinbase.com/exchange/rest-api/rate-limits", "2026",
					[]Policy{bucket(30, 15, Requests, time.Second, Key)}},
				{"coinbase:public", "Exchange, public endpoints, per address", "https://docs.cdp.coinbase.com/exchange/rest-api/rate-limits", "2026",
					[]Policy{bucket(15, 10, Requests, time.Second, IP)}},
			},
		},
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
}

// OKX states nothing of what is left. Code 50011 is a limit of an endpoint, per user and
// instrument; 50061 one of orders of a sub-account; windows are mostly two seconds. Busy servers
// answer 429 as well.
func okx() *row {
	return &row{
		Provider: Provider{
			Name: "okx", Title: "OKX",
			Hosts: []string{"www.okx.com", "okx.com", "my.okx.com", "eea.okx.com", "us.okx.com", "aws.okx.com"},
			Docs:  "https://www.okx.com/docs-v5/en/#overview-rate-limits", AsOf: "2026",
			Silent: true, Limited: Route, Banned: Key, Refusers: []Refuser{{"endpoint", Route}, {"sub-account orders", Key}},
			Published: []Preset{
				{"okx", "orders of a sub-account; endpoints have limits of their own", "https://www.okx.com/docs-v5/en/#overview-rate-limits", "2026",
					[]Policy{per(1000, Orders, 2*time.Second, "", Key)}},
			},
		},
		inBody: true,
		is: func(r *Response) bool {
			return mentions(r, `"code":"50011"`) || mentions(r, `"code":50011`) || mentions(r, `"code":"50061"`)
		},
		read: func(r *reading) {
			var body struct {
				Code any `json:"code"`
			}
			r.object(&body)
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
}

func formatFloat(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// CME's iLink is not HTTP. Messages above the first figure are rejected; at the second the session
// is logged out. The 3 s begin with a message.
func cme() *row {
	return &row{
		Provider: Provider{
			Name: "cme", Title: "CME iLink",
			Docs: "https://cmegroupclientsite.atlassian.net/wiki/spaces/EPICSANDBOX/pages/457317540/Messaging+Controls", AsOf: "2026",
			Limited: Key, Banned: Key,
			Published: []Preset{
				{"cme", "iLink, per session", "https://cmegroupclientsite.atlassian.net/wiki/spaces/EPICSANDBOX/pages/457317540/Messaging+Controls", "2026",
					[]Policy{named("reject", per(1500, Requests, 3*time.Second, Anchored, Key)), named("logout", per(2250, Requests, 3*time.Second, Anchored, Key))}},
			},
		},
	}
}

// Bitfinex counts per address and endpoint. After a refusal the address is kept away from the
// endpoint for up to a minute.
func bitfinex() *row {
	return &row{
		Provider: Provider{
			Name: "bitfinex", Title: "Bitfinex",
			Hosts: []string{"api.bitfinex.com", "api-pub.bitfinex.com"},
			Docs:  "https://docs.bitfinex.com/docs/requirements-and-limitations", AsOf: "2026-11",
			Silent: true, Limited: Route, Banned: IP,
		},
		refuse: []refused{
			{is: []Pattern{"ERR_RATE_LIMIT", "ratelimit: error"}, why: RateLimited, wait: time.Minute},
			{is: []Pattern{"nonce: small", "10114"}, why: Misordered},
		},
	}
}

// Deribit has a bucket of credits per sub-account, and ends the session that empties it.
func deribit() *row {
	return &row{
		Provider: Provider{
			Name: "deribit", Title: "Deribit",
			Hosts: []string{"www.deribit.com", "test.deribit.com", "history.deribit.com"},
			Docs:  "https://docs.deribit.com/articles/rate-limits", AsOf: "2026-11",
			Silent: true, Limited: Key, Banned: IP,
			Published: []Preset{
				{"deribit", "requests that reach no matching engine, per sub-account", "https://docs.deribit.com/articles/rate-limits", "2026-11", []Policy{bucket(100, 20, Requests, time.Second, Key)}},
				{"deribit:matching", "orders of the lowest tier, per sub-account", "https://docs.deribit.com/articles/rate-limits", "2026-11", []Policy{bucket(20, 5, Orders, time.Second, Key)}},
			},
		},
		inBody: true,
		is:     func(r *Response) bool { return mentions(r, `"too_many_requests"`) && mentions(r, `"usDiff"`) },
		refuse: []refused{
			{status: gentle, path: "error.code", is: []Pattern{"10028"}, why: RateLimited},
			{status: gentle, path: "error.code", is: []Pattern{"10066"}, why: TooMany},
			{status: gentle, path: "error.code", is: []Pattern{"10047"}, why: Overloaded},
		},
	}
}

func alpaca() *row {
	return &row{
		Provider: Provider{
			Name: "alpaca", Title: "Alpaca",
			Hosts: []string{"api.alpaca.markets", "paper-api.alpaca.markets", "data.alpaca.markets", "broker-api.alpaca.markets"},
			Docs:  "https://docs.alpaca.markets/docs/usage-limit-api-calls", AsOf: "2026-11",
			Limited: Key, Banned: Key,
			Published: []Preset{{"alpaca", "trading, per account", "https://alpaca.markets/support/usage-limit-api-calls", "2026-11", []Policy{per(200, Requests, time.Minute, "", Key)}}},
		},
		stated: []stated{{names: "X-RateLimit-*", is: per(0, Requests, time.Minute, "", Key)}},
		refuse: []refused{{path: "code", is: []Pattern{"42910000"}, why: RateLimited}},
	}
}

// Etherscan and its sisters refuse with status 200, in words that have the limit.
func etherscan() *row {
	return &row{
		Provider: Provider{
			Name: "etherscan", Title: "Etherscan",
			Hosts: []string{"api.etherscan.io", "api.bscscan.com", "api.polygonscan.com", "api.arbiscan.io", "api-optimistic.etherscan.io"},
			Docs:  "https://docs.etherscan.io/resources/rate-limits", AsOf: "2026-11",
			Silent: true, Limited: Key, Banned: Key, Refusers: []Refuser{{"address", IP}},
			Published: []Preset{
				{"etherscan", "free, per key", "https://docs.etherscan.io/resources/rate-limits", "2026-11", []Policy{per(3, Requests, time.Second, "", Key), named("day", per(100_000, Requests, day, "", Key))}},
			},
		},
		inBody: true,
		is: func(r *Response) bool {
			return mentions(r, `"NOTOK"`) && (mentions(r, "ax rate limit reached") || mentions(r, "ax calls per sec"))
		},
		refuse: []refused{
			{status: gentle, path: "result", is: []Pattern{"*ax daily rate limit*"}, why: QuotaExhausted},
			{status: gentle, path: "result", is: []Pattern{"*ax rate limit reached, please use API Key*"}, why: RateLimited, by: "address"},
			{status: gentle, path: "result", is: []Pattern{"*ax rate limit*", "*ax calls per sec*"}, why: RateLimited},
		},
	}
}
