package service

import (
	"fmt"
	"net/http"
	"regexp"
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
		extra:   []provider.Policy{policy("endpoint", 50, requests, time.Second, rolling, perRoute)},
		assumed: "every endpoint has 50 per second; a ban takes ten minutes, the least that is documented",
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
			a.set("X-Bapi-Limit", l.Limit)
			a.set("X-Bapi-Limit-Status", l.Left)
			a.set("X-Bapi-Limit-Reset-Timestamp", a.now.UnixMilli())
			a.body = object{"retCode": 0, "retMsg": "OK", "result": object{}, "retExtInfo": object{}, "time": a.now.UnixMilli()}
			if a.refused(object{"retCode": 10006, "retMsg": "Too many visits!", "result": object{}, "retExtInfo": object{},
				"time": a.now.UnixMilli()}) {
				a.status = http.StatusOK
				a.set("X-Bapi-Limit-Reset-Timestamp", milliOf(a.now.Add(a.wait)))
			}
		},
	}
}

func krakenRow() *tableRow {
	return &tableRow{
		name: "kraken", about: "Kraken's spot REST API: a counter that decays, refused with 200; histories count twice, " +
			"orders not",

		limits: []limitSet{
			set("kraken:starter", bucket(15, 33, weight, 100*time.Second, perKey)),
			set("kraken:intermediate", bucket(20, 1, weight, 2*time.Second, perKey)),
			set("kraken:pro", bucket(20, 1, weight, time.Second, perKey)),
		},
		cost: func(a *asked, _ *provider.Policy) int64 {
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
			set("coinbase", bucket(30, 15, requests, time.Second, perKey)),
		},
		extra: []provider.Policy{{Name: "public", Unit: provider.Requests, Scope: provider.IP, Rule: provider.Bucket,
			Limit: 10, Window: time.Second, Burst: 15}},
		cost: func(a *asked, p *provider.Policy) int64 {
			if a.Keyed == (p.Scope == provider.IP) {
				return 0
			}
			return 1
		},
		api: coinbaseAPI(),
		speak: func(a *reply) {
			if a.by != nil {
				a.body = object{"message": map[bool]string{true: "Public rate limit exceeded",
					false: "Private rate limit exceeded"}[a.by.Scope == provider.IP]}
			}
		},
	}
}

func okxRow() *tableRow {
	return &tableRow{
		name: "okx", about: "OKX's API v5: two seconds of an endpoint and instrument; orders of a sub-account",
		limits: []limitSet{
			set("okx", policy("orders", 1000, orders, 2*time.Second, rolling, perKey)),
		},
		extra:   []provider.Policy{policy("endpoint", 60, requests, 2*time.Second, rolling, perRoute)},
		assumed: "in any two seconds; every endpoint has 60",
		cost: func(a *asked, p *provider.Policy) int64 {
			if p.Name == "orders" &&
				(a.Method != http.MethodPost || !strings.HasPrefix(a.path(), "/api/v5/trade/order") &&
					a.path() != "/api/v5/trade/amend-order") {
				return 0
			}
			return 1
		},
		route: func(a *asked) string {
			instrument := ""
			if a.URL != nil {
				instrument = a.URL.Query().Get("instId")
			}
			if m := okxInstrument.FindSubmatch(a.Body); m != nil && instrument == "" {
				instrument = string(m[1])
			}
			return strings.TrimSpace(a.Method + " " + a.path() + " " + instrument)
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
			call := a.path()[strings.LastIndexByte(a.path(), '/')+1:]
			ordering := a.Method == http.MethodPost && (call == "order" || call == "batchOrders")
			if p.Unit == provider.Orders {
				return map[bool]int64{true: 1}[ordering]
			}
			switch call {
			case "exchangeInfo", "allOrders", "myTrades", "account":
				return 20
			case "depth":
				if a.URL != nil {
					if n, _ := strconv.Atoi(a.URL.Query().Get("limit")); n > 1000 {
						return 250
					} else if n > 500 {
						return 50
					} else if n > 100 {
						return 25
					}
				}
				return 5
			}
			return 1
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
