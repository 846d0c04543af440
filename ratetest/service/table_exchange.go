package service

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline/provider"
)

// exchanges are trading exchanges.
func exchanges() []*tableRow {
	return []*tableRow{
		binanceRow("binance", "Binance's API, as spot", binanceSpot()),
		binanceRow("binance-spot", "Binance spot: weight of an address, orders of an account, by the clock; bans",
			binanceSpot()),
		binanceRow("binance-futures",
			"Binance USDⓈ-M futures: weight of an address, orders of an account, by the clock; bans", binanceFutures()),
		bybitRow(),
		krakenRow(),
		coinbaseRow(),
		okxRow(),
		cmeRow(),
		etherscanRow(),
	}
}

func bybitRow() *tableRow {
	return &tableRow{
		name: "bybit", about: "Bybit's API v5: a second of an endpoint, refused with 200; 403 and a ban for an address",
		limits: []limitSet{
			set("bybit", policy("requests", 600, requests, 5*time.Second, rolling, perIP)),
		},
		extra: append(classes(time.Second, rolling, "1/s", "5/s", "10/s", "20/s", "25/s", "30/s", "50/s"),
			policy("endpoint", 50, requests, time.Second, rolling, perRoute)),
		assumed: "an endpoint that the documentation does not list has 50 per second; a ban takes ten minutes, the least that " +
			"is documented",
		cost: func(a *asked, p *provider.Policy) int64 {
			class := bybitClass(a)
			open := strings.HasPrefix(a.path(), "/v5/market/") // market data counts for the address alone
			return one(p.Scope == provider.IP || p.Name == class || p.Name == "endpoint" && class == "" && !open)
		},
		resource: func(a *asked) string { return a.Method + " " + a.path() },
		ban: &banRule{scope: provider.IP, by: "requests", after: 1, atOnce: true, first: 10 * time.Minute,
			most: 10 * time.Minute},
		api: bybitAPI(),
		speak: func(a *reply) {
			if !a.until.IsZero() {
				a.set("Content-Type", "text/html")
				a.body = "<html><head><title>403 Forbidden</title></head><body>access too frequent</body></html>\n"
				return
			}
			l := a.limit("endpoint")
			if class := bybitClass(a.asked); class != "" {
				l = a.limit(class)
			}
			if l != nil {
				a.set("X-Bapi-Limit", l.Limit)
				a.set("X-Bapi-Limit-Status", l.Left)
				a.set("X-Bapi-Limit-Reset-Timestamp", a.now.UnixMilli())
			}
			a.body = object{"retCode": 0, "retMsg": "OK", "result": object{}, "retExtInfo": object{}, "time": a.now.UnixMilli()}
			if a.refused(object{"retCode": 10006, "retMsg": "Too many visits!", "result": object{}, "retExtInfo": object{},
				"time": a.now.UnixMilli()}) {
				a.status = http.StatusOK
				a.set("X-Bapi-Limit-Reset-Timestamp", milliOf(a.now.Add(a.wait)))
			}
		},
	}
}

// bybitClass returns the class of an endpoint, "10/s", by the table of the documentation. Empty: it is
// not in the table.
func bybitClass(a *asked) string {
	group, call, _ := strings.Cut(strings.TrimPrefix(a.path(), "/v5/"), "/")
	for class, calls := range bybitCalls[group] {
		if slices.Contains(strings.Fields(calls), call) {
			return class
		}
	}
	return ""
}

var bybitCalls = map[string]map[string]string{
	"order": {"10/s": "create amend cancel cancel-all create-batch amend-batch cancel-batch pre-check",
		"50/s": "realtime history spot-borrow-check", "5/s": "disconnected-cancel-all"},
	"execution": {"50/s": "list"},
	"position": {"50/s": "list closed-pnl get-closed-positions",
		"10/s": "move-history set-leverage switch-mode trading-stop set-auto-add-margin add-margin confirm-pending-mmr " +
			"move-positions"},
	"account": {"10/s": "contract-transaction-log instruments-info set-limit-px-action", "25/s": "transaction-log",
		"50/s": "wallet-balance withdrawal borrow-history collateral-info info pay-info trade-info-for-analysis " +
			"user-setting-config",
		"5/s": "fee-rate query-dcp-info smp-group mmp-modify mmp-reset set-collateral-switch-batch set-margin-mode",
		"1/s": "borrow repay no-convert-repay quick-repayment upgrade-to-uta"},
	"asset": {
		"1/s": "transfer/query-asset-info transfer/query-transfer-coin-list transfer/query-inter-transfer-list " +
			"transfer/query-sub-member-list deposit/query-record transfer/inter-transfer withdraw/cancel withdraw/vasp/list",
		"5/s": "transfer/query-universal-transfer-list transfer/query-account-coins-balance deposit/query-sub-member-record " +
			"deposit/query-address deposit/query-sub-member-address withdraw/query-record coin/query-info " +
			"transfer/universal-transfer withdraw/create covert/small-balance-history covert/small-balance-execute covert/get-quote",
		"10/s": "exchange/order-record covert/small-balance-list",
		"30/s": "exchange/query-coin-list fundinghistory",
		"20/s": "transfer/save-transfer-sub-member exchange/quote-apply exchange/convert-execute",
		"50/s": "coin-greeks asset-overview delivery-record portfolio-margin settlement-record total-members-assets " +
			"exchange/convert-result-query exchange/query-convert-history",
	},
	"user": {
		"1/s": "create-sub-member create-sub-api",
		"5/s": "frozen-sub-member update-api update-sub-api delete-api delete-sub-api del-submember submembers " +
			"escrow_sub_members",
		"20/s": "agreement",
		"10/s": "query-sub-members query-api aff-customer-info sub-apikeys get-member-type invitation/referrals",
	},
	"spot-lever-token": {"50/s": "order-record", "20/s": "purchase redeem"},
}

func krakenRow() *tableRow {
	return &tableRow{
		name: "kraken", about: "Kraken's spot REST API: a counter that decays, refused with 200; histories count twice, " +
			"orders not; public calls apart",

		limits: []limitSet{
			set("kraken:starter", bucket(15, 33, weight, 100*time.Second, perKey)),
			set("kraken:intermediate", bucket(20, 1, weight, 2*time.Second, perKey)),
			set("kraken:pro", bucket(20, 1, weight, time.Second, perKey)),
		},
		extra:   []provider.Policy{policy("public", 1, requests, time.Second, rolling, perResource)},
		assumed: "one public call in any second, of an address, and for trades and candles of a pair",
		resource: func(a *asked) string {
			if call := a.path(); a.URL != nil && (strings.HasSuffix(call, "/Trades") || strings.HasSuffix(call, "/OHLC")) {
				return ofAddress + call + " " + a.URL.Query().Get("pair")
			}
			return ofAddress + "all others"
		},
		cost: func(a *asked, p *provider.Policy) int64 {
			if public := strings.HasPrefix(a.path(), "/0/public/"); public || p.Name == "public" {
				return one(public && p.Name == "public")
			}
			switch call := a.path()[strings.LastIndexByte(a.path(), '/')+1:]; call {
			case "Ledgers", "QueryLedgers", "TradesHistory", "ClosedOrders":
				return 2
			case "AddOrder", "AddOrderBatch", "EditOrder", "AmendOrder", "CancelOrder", "CancelOrderBatch", "CancelAll":
				return 0
			}
			return 1
		},
		api: krakenAPI(),
		speak: func(a *reply) {
			a.body = object{"error": []string{}, "result": object{"unixtime": a.now.Unix()}}
			if a.refused(object{"error": []string{"EAPI:Rate limit exceeded"}}) {
				a.status = http.StatusOK
			}
		},
	}
}

func coinbaseRow() *tableRow {
	return &tableRow{
		name: "coinbase", about: "Coinbase Exchange: lazily filled buckets, of a profile, or of an address without a key",

		limits: []limitSet{
			set("coinbase", bucket(30, 15, requests, time.Second, perResource)),
		},
		extra: []provider.Policy{
			named("public", bucket(15, 10, requests, time.Second, perResource)),
			named("fills", bucket(20, 10, requests, time.Second, perResource)),
			policy("loans", 10, requests, time.Second, inBucket, perResource),
		},
		cost: func(a *asked, p *provider.Policy) int64 { return one(coinbaseLimit(a) == p.Name) },
		resource: func(a *asked) string {
			if coinbaseLimit(a) == "public" {
				return ofAddress + "public"
			}
			return coinbaseLimit(a)
		},
		api: coinbaseAPI(),
		speak: func(a *reply) {
			if a.by != nil {
				a.body = object{"message": map[bool]string{true: "Public rate limit exceeded",
					false: "Private rate limit exceeded"}[a.by.Name == "public"]}
			}
		},
	}
}

// coinbaseLimit returns the limit of an endpoint; empty: it has none.
func coinbaseLimit(a *asked) string {
	switch first, rest, _ := strings.Cut(strings.TrimPrefix(a.path(), "/"), "/"); {
	case first == "products", first == "currencies", first == "time", first == "wrapped-assets":
		return "public"
	case first == "loans" && rest == "assets":
		return ""
	case first == "fills", first == "loans":
		return first
	}
	return "requests"
}

func okxRow() *tableRow {
	return &tableRow{
		name: "okx", about: "OKX's API v5: two seconds of an endpoint and instrument; orders of a sub-account",
		limits: []limitSet{
			set("okx", policy("orders", 1000, orders, 2*time.Second, rolling, perKey)),
		},
		extra: append(classes(2*time.Second, rolling, "1/2s", "2/2s", "4/2s", "5/2s", "10/2s", "12/2s", "15/2s", "20/2s", "40/2s",
			"60/2s", "100/2s"), policy("orders of a batch", 300, orders, 2*time.Second, rolling, perResource),
			policy("endpoint", 60, requests, 2*time.Second, rolling, perRoute)),
		assumed: "in any two seconds; an endpoint that is not in the fake's list has 60",
		cost: func(a *asked, p *provider.Policy) int64 {
			call, batched := strings.TrimPrefix(a.path(), "/api/v5/trade/"), int64(0)
			ordering := a.Method == http.MethodPost && (call == "order" || call == "amend-order")
			if a.Method == http.MethodPost && (call == "batch-orders" || call == "amend-batch-orders") {
				batched = max(1, int64(len(okxInstrument.FindAll(a.Body, -1))))
			}
			switch class := okxClass(a); p.Name {
			case "orders":
				return one(ordering) + batched
			case "orders of a batch":
				return batched
			case "endpoint":
				return one(class == "" && batched == 0)
			default:
				return one(p.Name == class)
			}
		},
		route: okxEndpoint,
		resource: func(a *asked) string {
			if slices.Contains(okxByInstrument, strings.TrimPrefix(a.path(), "/api/v5/")) || strings.HasSuffix(a.path(), "/trade/order") {
				return okxEndpoint(a)
			}
			return a.Method + " " + a.path()
		},
		api: okxAPI(),
		speak: func(a *reply) {
			a.body = object{"code": "0", "msg": "", "data": []string{}}
			if a.by != nil {
				a.body = map[bool]object{true: {"code": "50061",
					"msg": "Sub-account rate limit exceeded. Please try again later."},
					false: {"code": "50011", "msg": "Too Many Requests"}}[a.by.Name == "orders"]
			}
		},
	}
}

// okxEndpoint returns an endpoint, with the instrument of the request.
func okxEndpoint(a *asked) string {
	instrument := ""
	if a.URL != nil {
		instrument = a.URL.Query().Get("instId")
	}
	if m := okxInstrument.FindSubmatch(a.Body); m != nil && instrument == "" {
		instrument = string(m[1])
	}
	return strings.TrimSpace(a.Method + " " + a.path() + " " + instrument)
}

// okxByInstrument are the endpoints that read with a limit for each instrument.
var okxByInstrument = strings.Fields("public/funding-rate public/funding-rate-history public/mark-price " +
	"public/estimated-price public/open-interest public/price-limit")

// okxClass returns the class of an endpoint, "20/2s", by its page of the documentation. Empty: the
// list has not got it.
func okxClass(a *asked) string {
	call := a.Method + " " + strings.TrimPrefix(a.path(), "/api/v5/")
	for class, calls := range okxCalls {
		if slices.Contains(calls, call) {
			return class
		}
	}
	return ""
}

var okxCalls = map[string][]string{
	"1/2s":   {"GET market/exchange-rate", "GET asset/deposit-withdraw-status"},
	"2/2s":   {"GET market/platform-24-volume", "GET asset/asset-valuation", "POST trade/cancel-all-after"},
	"4/2s":   {"POST asset/transfer"},
	"5/2s":   {"GET account/config", "GET account/trade-fee", "POST account/set-position-mode", "POST trade/mass-cancel"},
	"12/2s":  {"GET asset/balances", "GET asset/currencies", "GET asset/deposit-history", "POST asset/withdrawal", "GET market/books-lite"},
	"15/2s":  {"POST trade/cancel-batch-orders"},
	"40/2s":  {"GET market/books", "GET market/candles", "GET trade/orders-history"},
	"60/2s":  {"POST trade/order", "POST trade/cancel-order", "POST trade/amend-order", "GET trade/order", "GET trade/orders-pending", "GET trade/fills"},
	"100/2s": {"GET market/trades"},
	"10/2s": {"GET public/time", "GET public/funding-rate", "GET public/funding-rate-history", "GET public/mark-price",
		"GET public/estimated-price", "GET market/books-full", "GET market/history-trades", "GET account/balance",
		"GET account/positions", "GET account/bills", "GET trade/fills-history", "GET public/position-tiers"},
	"20/2s": {"GET market/ticker", "GET market/tickers", "GET market/history-candles", "GET market/index-tickers",
		"GET public/instruments", "GET public/open-interest", "GET public/price-limit", "GET account/leverage-info",
		"GET account/max-size", "POST account/set-leverage", "GET trade/order-algo", "POST trade/order-algo",
		"POST trade/cancel-algos", "GET trade/orders-history-archive"},
}

func cmeRow() *tableRow {
	return &tableRow{
		name: "cme", about: "CME's messaging controls, over HTTP: three seconds that begin with a message, rejects and " +
			"log-out",
		limits: []limitSet{
			set("cme", policy("reject", 1500, requests, 3*time.Second, anchored, perKey),
				policy("logout", 2250, requests, 3*time.Second, anchored, perKey)),
		},
		assumed: "the log-out takes ten seconds; what answers say is made up, the rule is theirs",
		ban: &banRule{scope: provider.Key, by: "reject", beyond: "logout", atOnce: true, first: 10 * time.Second,
			most: 10 * time.Second},
		cost: func(_ *asked, p *provider.Policy) int64 { return map[string]int64{"reject": 1}[p.Name] },
		speak: func(a *reply) {
			switch {
			case !a.until.IsZero():
				a.body = object{"message": "logout", "reason": "message rate above the log-out threshold"}
			case a.by != nil:
				a.body = object{"message": "reject", "reason": "message rate above the reject threshold"}
			}
		},
	}
}

func etherscanRow() *tableRow {
	return &tableRow{
		name: "etherscan", about: "Etherscan's API: refused with 200, in words; without a key one in five seconds",
		limits: []limitSet{set("etherscan", policy("requests", 3, requests, time.Second, calendar, perKey),
			policy("day", 100_000, requests, day, calendar, perKey))},
		extra:   []provider.Policy{policy("address", 1, requests, 5*time.Second, calendar, perIP)},
		assumed: "in seconds of the clock, and days that end at midnight UTC",
		cost:    func(a *asked, p *provider.Policy) int64 { return one(a.Keyed != (p.Scope == provider.IP)) },
		speak: func(a *reply) {
			a.body = object{"status": "1", "message": "OK", "result": "0"}
			if a.by == nil {
				return
			}
			a.status = http.StatusOK
			says := map[string]string{
				"requests": fmt.Sprintf("Max calls per sec rate limit reached (%d/sec)", a.by.Limit),
				"day":      fmt.Sprintf("Max daily rate limit reached. %d (100%%) of %d day/limit", a.by.Used(), a.by.Limit),
				"address":  "Max rate limit reached, please use API Key for higher rate limit",
			}[a.by.Name]
			a.body = object{"status": "0", "message": "NOTOK", "result": says}
		},
	}
}

var okxInstrument = regexp.MustCompile(`"instId"\s*:\s*"([^"]{1,60})"`)

// interval returns a window in Binance's form: 1M, 10S.
func interval(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{day, "D"}, {time.Hour, "H"}, {time.Minute, "M"}} {
		if d%u.unit == 0 {
			return fmt.Sprint(int64(d/u.unit)) + u.name
		}
	}
	return fmt.Sprint(int64(d/time.Second)) + "S"
}

func binanceSpot() limitSet {
	return set("binance", policy("weight", 6000, weight, time.Minute, calendar, perIP),
		policy("orders", 100, orders, 10*time.Second, calendar, perKey),
		policy("orders per day", 200_000, orders, day, calendar, perKey))
}

func binanceFutures() limitSet {
	return set("binance:futures", policy("weight", 2400, weight, time.Minute, calendar, perIP),
		policy("orders", 300, orders, 10*time.Second, calendar, perKey),
		policy("orders per minute", 1200, orders, time.Minute, calendar, perKey))
}

// binanceRow is one of Binance's markets.
func binanceRow(name, about string, limits limitSet) *tableRow {
	return &tableRow{
		name: name, about: about, limits: []limitSet{limits},
		assumed: "ten refusals in a row are a ban: documented is that repeated ones are, from two minutes to three days",
		ban:     &banRule{scope: provider.IP, after: 10, first: 2 * time.Minute, most: 3 * day},
		cost: func(a *asked, p *provider.Policy) int64 {
			if strings.HasPrefix(a.path(), "/fapi/") {
				return binanceFuturesCost(a, p.Unit)
			}
			return binanceSpotCost(a, p.Unit)
		},
		api: binanceAPI(),
		speak: func(a *reply) {
			if !a.until.IsZero() {
				a.status = http.StatusTeapot
				a.set("Retry-After", a.in(a.until))
				a.body = object{"code": -1003,
					"msg": fmt.Sprintf("Way too much request weight used; IP banned until %d. Please use the websocket for live "+
						"updates to avoid bans.", milliOf(a.until))}
				return
			}
			a.set("X-Mbx-Uuid", fmt.Sprintf("00000000-0000-4000-8000-%012x", a.n))
			for i := range a.limits {
				l := &a.limits[i]
				field := "X-Mbx-Used-Weight-"
				if l.Unit == provider.Orders {
					field = "X-Mbx-Order-Count-"
				} else {
					a.set("X-Mbx-Used-Weight", l.Used())
				}
				a.set(field+interval(l.Window), l.Used())
			}
			if a.by == nil {
				return
			}
			a.retryAfter()
			if a.by.Unit == provider.Orders {
				a.body = object{"code": -1015,
					"msg": fmt.Sprintf("Too many new orders; current limit is %d orders per %v.", a.by.Limit, a.by.Window)}
				return
			}
			a.body = object{"code": -1003,
				"msg": fmt.Sprintf("Too much request weight used; current limit is %d request weight per %v.", a.by.Limit,
					a.by.Window)}
		},
	}
}

// binanceSpotCost is what a request of the spot market costs, by the page of each call.
func binanceSpotCost(a *asked, unit provider.Unit) int64 {
	call := strings.TrimPrefix(a.path(), "/api/v3/")
	if unit == provider.Orders {
		if a.Method != http.MethodPost {
			return 0
		}
		return map[string]int64{"order": 1, "sor/order": 1, "order/cancelReplace": 1, "order/oco": 2, "orderList/oco": 2,
			"orderList/oto": 2, "orderList/opo": 2, "orderList/otoco": 3, "orderList/opoco": 3}[call]
	}
	if a.Method != http.MethodGet || a.URL == nil {
		return 1
	}
	query := a.URL.Query()
	symbols, whole := int64(strings.Count(query.Get("symbols"), ",")+1), query.Get("symbol") == ""
	if query.Get("symbols") != "" {
		whole = false
	}
	n, _ := strconv.Atoi(query.Get("limit"))
	switch call {
	case "depth":
		return steps(n, 5, 100, 25, 500, 50, 1000, 250)
	case "ticker/24hr":
		if whole || symbols > 100 {
			return 80
		} else if symbols > 20 {
			return 40
		}
		return 2
	case "ticker/price", "ticker/bookTicker":
		return 4 - 2*one(query.Get("symbol") != "")
	case "ticker", "ticker/tradingDay":
		return min(4*symbols, 200)
	case "openOrders":
		return 80 - 74*one(!whole)
	case "myTrades":
		return 20 - 15*one(query.Get("orderId") != "")
	case "exchangeInfo", "allOrders", "allOrderList", "account", "account/commission", "myAllocations":
		return 20
	case "trades", "historicalTrades", "historicalBlockTrades":
		return 25
	case "rateLimit/order", "myFilters":
		return 40
	case "openOrderList":
		return 6
	case "aggTrades", "order", "orderList", "order/amendments":
		return 4
	case "klines", "uiKlines", "avgPrice":
		return 2
	}
	return 1
}

// binanceFuturesCost is what a request of the USDⓈ-M futures costs. Orders cost no weight.
func binanceFuturesCost(a *asked, unit provider.Unit) int64 {
	call := strings.TrimPrefix(a.path(), "/fapi/v1/")
	ordering, batch := call == "order" && (a.Method == http.MethodPost || a.Method == http.MethodPut), call == "batchOrders"
	switch {
	case unit == provider.Orders:
		return one(ordering) + 5*one(batch && a.Method != http.MethodDelete)
	case ordering:
		return 0
	case batch && a.Method != http.MethodDelete:
		return 5
	case a.URL == nil || a.Method != http.MethodGet:
		return 1
	}
	whole := a.URL.Query().Get("symbol") == ""
	n, err := strconv.Atoi(a.URL.Query().Get("limit"))
	if err != nil {
		n = 500
	}
	switch call {
	case "depth":
		return steps(n, 2, 50, 5, 100, 10, 500, 20)
	case "klines", "continuousKlines", "markPriceKlines", "indexPriceKlines", "premiumIndexKlines":
		return steps(n, 1, 99, 2, 499, 5, 1000, 10)
	case "ticker/24hr", "openOrders":
		return 1 + 39*one(whole)
	case "ticker/price":
		return 1 + one(whole)
	case "ticker/bookTicker":
		return 2 + 3*one(whole)
	case "historicalTrades", "aggTrades", "commissionRate":
		return 20
	case "income", "multiAssetsMargin", "positionSide/dual":
		return 30
	case "trades", "allOrders", "userTrades", "account", "balance", "positionRisk", "/fapi/v2/account", "/fapi/v3/account",
		"/fapi/v2/balance", "/fapi/v3/balance", "/fapi/v2/positionRisk", "/fapi/v3/positionRisk":
		return 5
	}
	return 1
}

// steps returns the first cost up to the first bound, and so on, and the last cost above all bounds.
func steps(n int, costs ...int64) int64 {
	for ; len(costs) > 1 && int64(n) > costs[1]; costs = costs[2:] {
	}
	return costs[0]
}
