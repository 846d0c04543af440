package provider

import (
	"cmp"
	"net/http"
	"slices"
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
			Charges: binanceSpotCharges(),
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
			Charges: binanceFuturesCharges(),
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
				{"bybit", "v5, per address, and each endpoint", "https://bybit-exchange.github.io/docs/v5/rate-limit", "2026",
					append([]Policy{per(600, Requests, 5*time.Second, Rolling, IP)}, ofClasses(Rolling, time.Second, "1/s", "5/s", "10/s", "20/s", "25/s", "30/s", "50/s")...)},
			},
			Charges: bybitCharges(),
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
					[]Policy{bucket(15, 33, Weight, 100*time.Second, Key), krakenPublic}},
				{"kraken:intermediate", "spot REST, per key", "https://docs.kraken.com/exchange/guides/rest/ratelimits", "2026-11",
					[]Policy{bucket(20, 1, Weight, 2*time.Second, Key), krakenPublic}},
				{"kraken:pro", "spot REST, per key", "https://docs.kraken.com/exchange/guides/rest/ratelimits", "2026-11",
					[]Policy{bucket(20, 1, Weight, time.Second, Key), krakenPublic}},
			},
			Charges: krakenCharges(),
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
					r.RetryAfter = cmp.Or(r.RetryAfter, 15*time.Minute)
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
				{"coinbase", "Exchange, private endpoints per profile, public ones per address",
					"https://docs.cdp.coinbase.com/exchange/rest-api/rate-limits", "2026",
					[]Policy{of("private", bucket(30, 15, Requests, time.Second, Resource)),
						of("fills", named("fills", bucket(20, 10, Requests, time.Second, Resource))),
						of("loans", named("loans", per(10, Requests, time.Second, Bucket, Resource))),
						of("address public", named("public", bucket(15, 10, Requests, time.Second, Resource)))}},
				{"coinbase:public", "Exchange, public endpoints, per address", "https://docs.cdp.coinbase.com/exchange/rest-api/rate-limits", "2026",
					[]Policy{bucket(15, 10, Requests, time.Second, IP)}},
			},
			Charges: from("https://docs.cdp.coinbase.com/exchange/rest-api/rate-limits", "2026-11", []Charge{
				{On: "GET /products*", Resource: "address public"}, {On: "GET /currencies*", Resource: "address public"},
				{On: "GET /time", Resource: "address public"},
				{On: "GET /wrapped-assets*", Resource: "address public"}, {On: "GET /loans/assets"},
				{On: "* /fills*", Resource: "fills"}, {On: "* /loans*", Resource: "loans"}, {On: "* *", Resource: "private"},
			}),
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
				{"okx", "orders of a sub-account, and each endpoint", "https://www.okx.com/docs-v5/en/#overview-rate-limits", "2026",
					append([]Policy{per(1000, Orders, 2*time.Second, "", Key), of("orders/2s *", named("orders of a batch", per(300, Orders, 2*time.Second, "", Resource)))},
						ofClasses("", 2*time.Second, "1/2s", "2/2s", "4/2s", "5/2s", "10/2s", "12/2s", "15/2s", "20/2s", "40/2s", "60/2s", "100/2s")...)},
			},
			Charges: okxCharges(),
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

// binanceSpotCharges are of rest-api.md of the documentation's repository, as of 2026-07.
func binanceSpotCharges() []Charge {
	ordering := func(on string, orders int64) Charge {
		return Charge{On: "POST /api/v3/" + on, Cost: map[Unit]int64{Weight: 1, Orders: orders}}
	}
	return from("https://developers.binance.com/docs/binance-spot-api-docs/rest-api/market-data-endpoints", "2026-07",
		weighs("/api/v3/", `
			250 GET depth?limit>1000
			50  GET depth?limit>500
			25  GET depth?limit>100
			5   GET depth
			80  GET ticker/24hr?symbols>100 ticker/24hr?symbol=&symbols=
			40  GET ticker/24hr?symbols>20
			2   GET ticker/24hr
			4   GET ticker/price?symbol= ticker/bookTicker?symbol=
			2   GET ticker/price ticker/bookTicker
			200 GET ticker?symbols>20 ticker/tradingDay?symbols>20
			80  GET ticker?symbols>5 ticker/tradingDay?symbols>5
			20  GET ticker?symbols>1 ticker/tradingDay?symbols>1
			4   GET ticker ticker/tradingDay
			40  GET executionRules?symbol=
			2   GET executionRules klines uiKlines avgPrice referencePrice referencePrice/calculation
			4   GET aggTrades order orderList order/amendments
			25  GET trades historicalTrades historicalBlockTrades
			20  GET exchangeInfo account allOrders allOrderList account/commission myAllocations
			40  GET rateLimit/order myFilters
			80  GET openOrders?symbol=
			6   GET openOrders openOrderList
			20  GET myTrades?orderId= myPreventedMatches?preventedMatchId=
			5   GET myTrades
			2   GET myPreventedMatches
			20  POST order/test?computeCommissionRates=true sor/order/test?computeCommissionRates=true
			4   PUT order/amend/keepPriority
			2   * userDataStream`),
		[]Charge{
			ordering("order", 1), ordering("sor/order", 1), ordering("order/cancelReplace", 1),
			ordering("order/oco", 2), ordering("orderList/oco", 2), ordering("orderList/oto", 2), ordering("orderList/opo", 2),
			ordering("orderList/otoco", 3), ordering("orderList/opoco", 3),
			cost("* /api/*", 1, Weight),
		})
}

// binanceFuturesCharges: without a limit, depth has 500 levels and klines 500 candles. An order
// counts in the limits of orders alone, and a batch as the five orders that it may have.
func binanceFuturesCharges() []Charge {
	order := func(on string, n int64) Charge { return cost(on, n, Orders) }
	batch := Charge{Cost: map[Unit]int64{Weight: 5, Orders: 5}}
	post, put := batch, batch
	post.On, put.On = "POST /fapi/v1/batchOrders", "PUT /fapi/v1/batchOrders"
	var klines []Charge
	for _, kind := range []string{"klines", "continuousKlines", "markPriceKlines", "indexPriceKlines", "premiumIndexKlines"} {
		klines = append(klines, weighs("/fapi/v1/"+kind, `
			10 GET ?limit>1000
			1  GET ?limit<100
			2  GET ?limit<500`)...)
		klines = append(klines, cost("GET /fapi/v1/"+kind, 5, Weight))
	}
	return slices.Concat(from("https://www.npmjs.com/package/ccxt/v/4.5.84", "2026-11", weighs("/fapi/v1/", `
			5   GET tradingSchedule pmAccountInfo convert/orderStatus
			4   GET convert/exchangeInfo
			50  GET stock/contract
			200 POST convert/getQuote
			20  POST convert/acceptQuote`)), from("https://developers.binance.com/docs/derivatives/usds-margined-futures/market-data/rest-api/Order-Book", "2026-11",
		weighs("/fapi/v1/", `
			20 GET depth?limit>500
			2  GET depth?limit<51
			5  GET depth?limit<101
			10 GET depth`), klines,
		weighs("/fapi/v1/", `
			20 GET historicalTrades aggTrades commissionRate rpiDepth
			40 GET ticker/24hr?symbol= openOrders?symbol= openAlgoOrders?symbol=
			2  GET ticker/price?symbol= constituents
			5  GET ticker/bookTicker?symbol=
			2  GET ticker/bookTicker
			10 GET assetIndex?symbol= premiumIndex?symbol= apiTradingStatus?symbol=
			5  GET trades allOrders userTrades account balance positionRisk adlQuantile symbolConfig accountConfig allAlgoOrders
			50 GET forceOrders?symbol=
			20 GET forceOrders
			30 GET income multiAssetsMargin positionSide/dual
			1000 GET income/asyn order/asyn trade/asyn
			10 GET income/asyn/id order/asyn/id trade/asyn/id
			10 POST countdownCancelAll`),
		weighs("/fapi/", `
			5 GET v2/account v3/account v2/balance v3/balance v2/positionRisk v3/positionRisk`),
		[]Charge{order("POST /fapi/v1/order", 1), order("PUT /fapi/v1/order", 1), post, put, cost("* /fapi/*", 1, Weight)}))
}

// bybitCharges: an endpoint has a second of its own. Those of market data count per address alone.
func bybitCharges() []Charge {
	return from("https://bybit-exchange.github.io/docs/v5/rate-limit", "2026-11", each("/v5/", "{method} {path}", `
		10/s POST order/create order/amend order/cancel order/cancel-all order/create-batch order/amend-batch order/cancel-batch order/pre-check
		5/s  POST order/disconnected-cancel-all
		50/s GET  order/realtime order/history execution/list order/spot-borrow-check
		50/s GET  position/list position/closed-pnl position/get-closed-positions
		10/s GET  position/move-history
		10/s POST position/set-leverage position/switch-mode position/trading-stop position/set-auto-add-margin
		10/s POST position/add-margin position/confirm-pending-mmr position/move-positions
		50/s GET  account/wallet-balance account/withdrawal account/borrow-history account/collateral-info account/info
		50/s GET  account/pay-info account/trade-info-for-analysis account/user-setting-config asset/coin-greeks
		25/s GET  account/transaction-log
		10/s GET  account/instruments-info account/contract-transaction-log
		5/s  GET  account/fee-rate account/query-dcp-info account/smp-group
		1/s  *    account/borrow account/repay account/no-convert-repay
		5/s  POST account/mmp-modify account/mmp-reset account/set-collateral-switch-batch account/set-margin-mode
		1/s  POST account/quick-repayment account/upgrade-to-uta
		10/s POST account/set-limit-px-action
		1/s  GET  asset/transfer/query-asset-info asset/transfer/query-transfer-coin-list asset/transfer/query-inter-transfer-list
		1/s  GET  asset/transfer/query-sub-member-list asset/deposit/query-record asset/withdraw/vasp/list
		5/s  GET  asset/transfer/query-universal-transfer-list asset/transfer/query-account-coins-balance
		5/s  GET  asset/deposit/query-sub-member-record asset/deposit/query-address asset/deposit/query-sub-member-address
		5/s  GET  asset/withdraw/query-record asset/coin/query-info asset/covert/small-balance-history
		10/s GET  asset/exchange/order-record asset/covert/small-balance-list
		30/s GET  asset/exchange/query-coin-list asset/fundinghistory
		50/s GET  asset/asset-overview asset/delivery-record asset/portfolio-margin asset/settlement-record asset/total-members-assets
		50/s GET  asset/exchange/convert-result-query asset/exchange/query-convert-history
		1/s  POST asset/transfer/inter-transfer asset/withdraw/cancel
		20/s POST asset/transfer/save-transfer-sub-member asset/exchange/quote-apply asset/exchange/convert-execute
		5/s  POST asset/transfer/universal-transfer asset/withdraw/create asset/covert/small-balance-execute asset/covert/get-quote
		1/s  POST user/create-sub-member user/create-sub-api
		5/s  POST user/frozen-sub-member user/update-api user/update-sub-api user/delete-api user/delete-sub-api user/del-submember
		20/s POST user/agreement
		10/s GET  user/query-sub-members user/query-api user/aff-customer-info user/sub-apikeys user/get-member-type
		10/s GET  user/invitation/referrals
		5/s  GET  user/submembers user/escrow_sub_members
		50/s GET  spot-lever-token/order-record
		20/s POST spot-lever-token/purchase spot-lever-token/redeem`))
}

// krakenPublic is of requests without a key: more than one a second may be refused.
var krakenPublic = of("address public*", named("public", per(1, Requests, time.Second, "", Resource)))

// krakenCharges: what the matching engine limits costs nothing of the counter. Public calls count
// per address, and some of them per pair, too.
func krakenCharges() []Charge {
	public := []Charge{
		{On: "* /0/public/Trades", Resource: "address public {path} {query:pair}"},
		{On: "* /0/public/OHLC", Resource: "address public {path} {query:pair}"},
		{On: "* /0/public/*", Resource: "address public"},
	}
	return slices.Concat(
		from("https://docs.kraken.com/exchange/guides/rest/ratelimits", "2026-11",
			weighs("/0/private/", `
				2 * Ledgers QueryLedgers TradesHistory ClosedOrders
				0 * AddOrder AddOrderBatch AmendOrder EditOrder CancelOrder CancelOrderBatch`),
			[]Charge{cost("* /0/private/*", 1, Weight)}),
		from("https://support.kraken.com/articles/206548367-what-are-the-api-rate-limits-", "2026-11", public))
}

// okxCharges: each endpoint has two seconds of its own, per address or user, and some of them per
// instrument, too. Orders name theirs in the body, so here all instruments share.
func okxCharges() []Charge {
	order := func(path string, n int64, resource string) Charge {
		return Charge{On: "POST /api/v5/trade/" + path, Cost: map[Unit]int64{Orders: n}, Resource: resource + " {method} {path}"}
	}
	return from("https://www.okx.com/docs-v5/en/", "2026-11",
		each("/api/v5/", "{method} {path} {query:instId}", `
			10/2s GET public/funding-rate public/funding-rate-history public/mark-price public/estimated-price
			20/2s GET public/open-interest public/price-limit`),
		each("/api/v5/", "{method} {path}", `
			100/2s GET market/trades
			40/2s GET market/books market/candles public/delivery-exercise-history
			20/2s GET market/tickers market/ticker market/history-candles market/index-tickers market/index-candles market/mark-price-candles
			20/2s GET market/block-tickers market/block-ticker public/instruments public/opt-summary public/underlying public/option-trades
			12/2s GET market/books-lite
			10/2s GET market/books-full market/history-trades public/time public/position-tiers public/insurance-fund public/convert-contract-coin
			2/2s  GET market/platform-24-volume public/discount-rate-interest-free-quota public/interest-rate-loan-quota
			1/2s  GET market/exchange-rate
			5/2s  GET rubik/stat/taker-volume rubik/stat/trading-data/support-coin rubik/stat/margin/loan-ratio
			60/2s GET trade/order trade/orders-pending trade/fills
			40/2s GET trade/orders-history
			20/2s GET trade/orders-history-archive trade/order-algo trade/orders-algo-pending trade/orders-algo-history trade/account-rate-limit
			10/2s GET trade/fills-history
			60/2s POST trade/cancel-order
			15/2s POST trade/cancel-batch-orders
			20/2s POST trade/close-position trade/order-algo trade/cancel-algos trade/amend-algos
			5/2s  POST trade/mass-cancel trade/order-precheck
			2/2s  POST trade/cancel-all-after
			10/2s GET account/balance account/positions account/positions-history account/account-position-risk account/risk-state
			10/2s GET account/bills account/greeks account/position-tiers
			20/2s GET account/instruments account/max-size account/max-avail-size account/leverage-info account/max-loan account/max-withdrawal
			5/2s  GET account/config account/bills-archive account/trade-fee account/interest-accrued account/interest-rate account/interest-limits
			20/2s POST account/set-leverage account/position/margin-balance
			5/2s  POST account/set-position-mode account/set-greeks account/set-isolated-mode account/set-account-level
			12/2s GET asset/currencies asset/balances asset/non-tradable-assets asset/bills asset/deposit-address asset/deposit-history
			12/2s GET asset/withdrawal-history asset/convert/currencies asset/convert/currency-pair asset/convert/history
			20/2s GET asset/transfer-state
			2/2s  GET asset/asset-valuation users/subaccount/list
			1/2s  GET asset/deposit-withdraw-status
			4/2s  POST asset/transfer asset/withdrawal-lightning
			12/2s POST asset/withdrawal asset/cancel-withdrawal`),
		[]Charge{
			order("order", 1, "60/2s"), order("amend-order", 1, "60/2s"),
			order("batch-orders", 20, "orders/2s"), order("amend-batch-orders", 20, "orders/2s"),
		})
}
