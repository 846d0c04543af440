package service

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Two coins are enough for a market.
var coins = []string{"BTC", "ETH"}

const (
	price, bid, ask, size = "100.00", "99.90", "100.10", "1.000"
	tick, step, least     = "0.01", "0.001", "0.001"
)

// each makes an entry for each coin.
func each(make func(coin string) object) []object {
	var all []object
	for _, coin := range coins {
		all = append(all, make(coin))
	}
	return all
}

// timed is an answer whose body depends on the server's clock.
func timed(make func(r *reply) any) func(*asked, []string) *answer {
	return func(*asked, []string) *answer { return &answer{status: http.StatusOK, body: make} }
}

// filled is an answer of which the row makes the frame. make makes the part within.
func filled(part string, make func(r *reply) any) func(*asked, []string) *answer {
	return timed(func(r *reply) any {
		if body, ok := r.body.(object); ok {
			body[part] = make(r)
		}
		return r.body
	})
}

// depth is the best bid and the best ask.
func depth() ([][]string, [][]string) { return [][]string{{bid, size}}, [][]string{{ask, size}} }

// onlyPrivate asks for a key at some paths.
func onlyPrivate(private func(a *asked) bool, refusal *answer) func(*asked) *answer {
	return func(a *asked) *answer {
		if a.Keyed || !private(a) {
			return nil
		}
		return refusal
	}
}

func binanceSymbol(coin string) object {
	return object{"symbol": coin + "USDT", "status": "TRADING", "baseAsset": coin, "baseAssetPrecision": 8,
		"quoteAsset": "USDT", "quotePrecision": 8, "quoteAssetPrecision": 8, "orderTypes": []string{"LIMIT", "MARKET"},
		"isSpotTradingAllowed": true, "isMarginTradingAllowed": false, "permissions": []string{"SPOT"},
		"filters": []object{{"filterType": "PRICE_FILTER", "minPrice": tick, "maxPrice": "1000000.00", "tickSize": tick},
			{"filterType": "LOT_SIZE", "minQty": least, "maxQty": "9000.000", "stepSize": step},
			{"filterType": "NOTIONAL", "minNotional": "5.00"}}}
}

// binanceInfo is the exchange's description of itself, with the limits that it enforces.
func binanceInfo(symbols []object) func(*asked, []string) *answer {
	return timed(func(r *reply) any {
		limits := []object{}
		for _, l := range r.limits {
			limits = append(limits, object{"rateLimitType": "REQUEST_WEIGHT", "interval": "MINUTE", "intervalNum": 1,
				"limit": l.Limit})
		}
		return object{"timezone": "UTC", "serverTime": r.now.UnixMilli(), "rateLimits": limits, "exchangeFilters": []object{},
			"symbols": symbols}
	})
}

func binanceTicker(symbol string, r *reply) object {
	return object{"symbol": symbol, "priceChange": "0.00", "priceChangePercent": "0.000", "weightedAvgPrice": price,
		"lastPrice": price, "lastQty": size, "openPrice": price, "highPrice": price, "lowPrice": price, "bidPrice": bid,
		"bidQty": size, "askPrice": ask, "askQty": size, "volume": "10", "quoteVolume": "1000",
		"openTime": r.now.UnixMilli() - 86_400_000, "closeTime": r.now.UnixMilli(), "count": 1}
}

// binanceAPI has the same paths below /api/v3 and /fapi/v1.
func binanceAPI() func(*asked) *answer {
	perpetual := func(coin string) object {
		o := binanceSymbol(coin)
		o["pair"], o["contractType"], o["marginAsset"] = coin+"USDT", "PERPETUAL", "USDT"
		o["deliveryDate"], o["underlyingType"], o["onboardDate"] = 4_133_404_800_000, "COIN", 1_569_398_400_000
		return o
	}
	all := []route{
		{"GET /api/v3/exchangeInfo", binanceInfo(each(binanceSymbol))},
		{"GET /fapi/v1/exchangeInfo", binanceInfo(each(perpetual))},
		{"GET /dapi/v1/exchangeInfo", binanceInfo([]object{})},
		{"GET /api/v3/account", timed(func(*reply) any {
			return object{"makerCommission": 10, "takerCommission": 10, "canTrade": true, "accountType": "SPOT", "uid": 1,
				"balances": each(func(coin string) object { return object{"asset": coin, "free": size, "locked": "0.000"} })}
		})},
	}
	for _, base := range []string{"/api/v3", "/fapi/v1"} {
		all = append(all,
			route{"GET " + base + "/ping", timed(func(*reply) any { return object{} })},
			route{"GET " + base + "/time", timed(func(r *reply) any { return object{"serverTime": r.now.UnixMilli()} })},
			route{"GET " + base + "/depth", timed(func(r *reply) any {
				bids, asks := depth()
				return object{"lastUpdateId": r.n, "bids": bids, "asks": asks}
			})},
			route{"GET " + base + "/ticker/24hr", func(a *asked, _ []string) *answer {
				return &answer{status: http.StatusOK, body: func(r *reply) any {
					if symbol := a.field("symbol"); symbol != "" {
						return binanceTicker(clipped(symbol), r)
					}
					return each(func(coin string) object { return binanceTicker(coin+"USDT", r) })
				}}
			}},
			route{"POST " + base + "/order", func(a *asked, _ []string) *answer {
				return &answer{status: http.StatusOK, body: func(r *reply) any {
					return object{"symbol": a.field("symbol"), "orderId": r.n, "clientOrderId": a.field("newClientOrderId"),
						"transactTime": r.now.UnixMilli(), "price": a.field("price"), "origQty": a.field("quantity"),
						"executedQty": "0.000", "status": "NEW", "timeInForce": "GTC", "type": a.field("type"), "side": a.field("side")}
				}}
			}})
	}
	return routed(onlyPrivate(func(a *asked) bool {
		return strings.HasSuffix(a.path(), "/order") || strings.HasSuffix(a.path(), "/account")
	}, noKey(http.StatusUnauthorized, object{"code": -2014, "msg": "API-key format invalid."})), all...)
}

// bybitAPI fills the result of the row's frame.
func bybitAPI() func(*asked) *answer {
	instrument := func(coin string) object {
		return object{"symbol": coin + "USDT", "baseCoin": coin, "quoteCoin": "USDT", "status": "Trading",
			"marginTrading": "none", "innovation": "0", "priceFilter": object{"tickSize": tick},
			"lotSizeFilter": object{"basePrecision": step, "quotePrecision": "0.0000001", "minOrderQty": least,
				"maxOrderQty": "9000", "minOrderAmt": "5", "maxOrderAmt": "1000000"}}
	}
	ticker := func(coin string) object {
		return object{"symbol": coin + "USDT", "bid1Price": bid, "bid1Size": size, "ask1Price": ask, "ask1Size": size,
			"lastPrice": price, "prevPrice24h": price, "price24hPcnt": "0", "highPrice24h": price, "lowPrice24h": price,
			"turnover24h": "1000", "volume24h": "10"}
	}
	list := func(make func(coin string) object) func(*asked, []string) *answer {
		return func(a *asked, parts []string) *answer {
			category := clipped(a.field("category"))
			return filled("result", func(*reply) any {
				rows := []object{}
				if category == "spot" {
					rows = each(make)
				}
				if symbol := a.field("symbol"); symbol != "" {
					rows = []object{make(strings.TrimSuffix(clipped(symbol), "USDT"))}
				}
				return object{"category": category, "list": rows, "nextPageCursor": ""}
			})(a, parts)
		}
	}
	return routed(onlyPrivate(func(a *asked) bool { return !strings.HasPrefix(a.path(), "/v5/market/") },
		noKey(http.StatusUnauthorized, object{"retCode": 10003, "retMsg": "API key is invalid.", "result": object{},
			"retExtInfo": object{}})),
		route{"GET /v5/market/instruments-info", list(instrument)},
		route{"GET /v5/market/tickers", list(ticker)},
		route{"GET /v5/market/time", filled("result", func(r *reply) any {
			return object{"timeSecond": fmt.Sprint(r.now.Unix()), "timeNano": fmt.Sprint(r.now.UnixNano())}
		})},
		route{"GET /v5/market/orderbook", func(a *asked, parts []string) *answer {
			return filled("result", func(r *reply) any {
				bids, asks := depth()
				return object{"s": a.field("symbol"), "b": bids, "a": asks, "ts": r.now.UnixMilli(), "u": r.n, "seq": r.n}
			})(a, parts)
		}},
		route{"GET /v5/user/query-api", filled("result", func(*reply) any {
			return object{"id": "1", "uta": 1, "unified": 0, "readOnly": 0, "permissions": object{}}
		})},
		route{"GET /v5/account/info", filled("result", func(*reply) any {
			return object{"unifiedMarginStatus": 5, "marginMode": "REGULAR_MARGIN"}
		})},
		route{"GET /v5/account/wallet-balance", filled("result", func(*reply) any {
			return object{"list": []object{{"accountType": "UNIFIED", "coin": each(func(coin string) object {
				return object{"coin": coin, "walletBalance": size, "equity": size, "locked": "0"}
			})}}}
		})},
	)
}

// krakenPair is Kraken's name of a market against the dollar.
func krakenPair(coin string) string { return "X" + krakenCoin(coin) + "ZUSD" }

func krakenCoin(coin string) string { return strings.Replace(coin, "BTC", "XBT", 1) }

// krakenAPI fills the result of the row's frame.
func krakenAPI() func(*asked) *answer {
	named := func(name func(string) string, make func(coin string) object) func(*asked, []string) *answer {
		return filled("result", func(*reply) any {
			all := object{}
			for _, coin := range coins {
				all[name(coin)] = make(coin)
			}
			return all
		})
	}
	pair := func(coin string) object {
		return object{"altname": krakenCoin(coin) + "USD", "wsname": krakenCoin(coin) + "/USD", "aclass_base": "currency",
			"base": "X" + krakenCoin(coin), "aclass_quote": "currency", "quote": "ZUSD", "lot": "unit", "cost_decimals": 5,
			"pair_decimals": 2, "lot_decimals": 8, "lot_multiplier": 1, "leverage_buy": []int{}, "leverage_sell": []int{},
			"fees": [][]float64{{0, 0.4}}, "fees_maker": [][]float64{{0, 0.25}}, "fee_volume_currency": "ZUSD",
			"margin_call": 80, "margin_stop": 40, "ordermin": least, "costmin": "0.5", "tick_size": tick, "status": "online"}
	}
	asset := func(name string) object {
		return object{"aclass": "currency", "altname": name, "decimals": 10, "display_decimals": 5, "status": "enabled"}
	}
	ticker := func(string) object {
		return object{"a": []string{ask, "1", size}, "b": []string{bid, "1", size}, "c": []string{price, size},
			"v": []string{"10", "10"}, "p": []string{price, price}, "t": []int{1, 1}, "l": []string{price, price},
			"h": []string{price, price}, "o": price}
	}
	return routed(onlyPrivate(func(a *asked) bool { return strings.HasPrefix(a.path(), "/0/private/") },
		noKey(http.StatusOK, object{"error": []string{"EAPI:Invalid key"}})),
		route{"GET /0/public/AssetPairs", named(krakenPair, pair)},
		route{"GET /0/public/Assets", filled("result", func(*reply) any {
			all := object{"ZUSD": asset("USD")}
			for _, coin := range coins {
				all["X"+krakenCoin(coin)] = asset(krakenCoin(coin))
			}
			return all
		})},
		route{"GET /0/public/Ticker", named(krakenPair, ticker)},
		route{"GET /0/public/Depth", named(krakenPair, func(string) object {
			at := 1_736_942_400
			return object{"bids": [][]any{{bid, size, at}}, "asks": [][]any{{ask, size, at}}}
		})},
		route{"GET /0/public/Time", filled("result", func(r *reply) any {
			return object{"unixtime": r.now.Unix(), "rfc1123": r.now.UTC().Format(http.TimeFormat)}
		})},
		route{"POST /0/private/Balance", filled("result", func(*reply) any {
			return object{"XXBT": size, "ZUSD": "100.00"}
		})},
		route{"POST /0/private/BalanceEx", filled("result", func(*reply) any {
			return object{"XXBT": object{"balance": size, "hold_trade": "0"},
				"ZUSD": object{"balance": "100", "hold_trade": "0"}}
		})},
		route{"POST /0/private/AddOrder", filled("result", func(r *reply) any {
			return object{"descr": object{"order": "buy 1.0 XBTUSD @ limit 100.0"},
				"txid": []string{fmt.Sprintf("FIG-%06d", r.n)}}
		})},
	)
}

// coinbaseAPI is that of Coinbase Exchange, whose answers have no frame.
func coinbaseAPI() func(*asked) *answer {
	product := func(coin string) object {
		return object{"id": coin + "-USD", "base_currency": coin, "quote_currency": "USD", "base_increment": step,
			"quote_increment": tick, "display_name": coin + "-USD", "min_market_funds": "1", "margin_enabled": false,
			"post_only": false, "limit_only": false, "cancel_only": false, "status": "online", "status_message": "",
			"trading_disabled": false, "fx_stablecoin": false, "max_slippage_percentage": "0.02", "auction_mode": false}
	}
	list := func(make func(coin string) object) func(*asked, []string) *answer {
		return timed(func(*reply) any { return each(make) })
	}
	at := func(r *reply) string { return r.now.UTC().Format(time.RFC3339) }
	return routed(onlyPrivate(func(a *asked) bool { return a.path() == "/accounts" || a.path() == "/orders" },
		noKey(http.StatusUnauthorized, object{"message": "CB-ACCESS-KEY header is required"})),
		route{"GET /products", list(product)},
		route{"GET /currencies", list(func(coin string) object {
			return object{"id": coin, "name": coin, "min_size": least, "status": "online", "message": "", "max_precision": step,
				"convertible_to": []string{}, "details": object{"type": "crypto"}, "default_network": "",
				"supported_networks": []object{}}
		})},
		route{"GET /time", timed(func(r *reply) any { return object{"iso": at(r), "epoch": r.now.Unix()} })},
		route{"GET /products/{}/ticker", timed(func(r *reply) any {
			return object{"ask": ask, "bid": bid, "volume": "10", "trade_id": r.n, "price": price, "size": size, "time": at(r)}
		})},
		route{"GET /products/{}/book", timed(func(r *reply) any {
			return object{"sequence": r.n, "bids": [][]any{{bid, size, 1}}, "asks": [][]any{{ask, size, 1}}, "time": at(r)}
		})},
		route{"GET /accounts", list(func(coin string) object {
			return object{"id": coin, "currency": coin, "balance": size, "available": size, "hold": "0", "profile_id": "1",
				"trading_enabled": true}
		})},
		route{"GET /orders", timed(func(*reply) any { return []object{} })},
	)
}

// okxAPI fills the data of the row's frame.
func okxAPI() func(*asked) *answer {
	instrument := func(coin string) object {
		return object{"instType": "SPOT", "instId": coin + "-USDT", "baseCcy": coin, "quoteCcy": "USDT", "settleCcy": "",
			"ctVal": "", "ctMult": "", "ctValCcy": "", "ctType": "", "alias": "", "expTime": "", "listTime": "1548133413000",
			"lever": "", "tickSz": tick, "lotSz": step, "minSz": least, "state": "live", "uly": "", "instFamily": "", "stk": ""}
	}
	data := func(make func(r *reply) object) func(*asked, []string) *answer {
		return filled("data", func(r *reply) any { return []object{make(r)} })
	}
	private := func(a *asked) bool {
		return !strings.HasPrefix(a.path(), "/api/v5/public/") && !strings.HasPrefix(a.path(), "/api/v5/market/")
	}
	return routed(onlyPrivate(private, noKey(http.StatusUnauthorized,
		object{"code": "50103", "msg": "Request header OK-ACCESS-KEY cannot be empty.", "data": []object{}})),
		route{"GET /api/v5/public/instruments", filled("data", func(r *reply) any {
			if r.field("instType") != "SPOT" {
				return []object{}
			}
			return each(instrument)
		})},
		route{"GET /api/v5/public/time", data(func(r *reply) object { return object{"ts": fmt.Sprint(r.now.UnixMilli())} })},
		route{"GET /api/v5/market/ticker", data(func(r *reply) object {
			return object{"instType": "SPOT", "instId": r.field("instId"), "last": price, "lastSz": size, "askPx": ask,
				"askSz": size, "bidPx": bid, "bidSz": size, "open24h": price, "high24h": price, "low24h": price,
				"volCcy24h": "1000", "vol24h": "10", "ts": fmt.Sprint(r.now.UnixMilli())}
		})},
		route{"GET /api/v5/market/books", data(func(r *reply) object {
			return object{"asks": [][]string{{ask, size, "0", "1"}}, "bids": [][]string{{bid, size, "0", "1"}},
				"ts": fmt.Sprint(r.now.UnixMilli())}
		})},
		route{"GET /api/v5/account/balance", data(func(r *reply) object {
			return object{"uTime": fmt.Sprint(r.now.UnixMilli()), "totalEq": "100", "details": each(func(coin string) object {
				return object{"ccy": coin, "availBal": size, "availEq": size, "cashBal": size, "eq": size, "frozenBal": "0"}
			})}
		})},
		route{"POST /api/v5/trade/order", data(func(r *reply) object {
			return object{"ordId": fmt.Sprint(r.n), "clOrdId": "", "tag": "", "sCode": "0", "sMsg": ""}
		})},
	)
}
