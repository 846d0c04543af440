package provider_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/provider"
)

// ccxtUnits say what one unit of ccxt's throttler is: its throttler gives so many units a second.
var ccxtUnits = map[string]struct {
	ours func(c *provider.Charge, resource string) (float64, bool) // in ccxt's units; false: ours has no row
}{
	"binance-spot":    {weightIn(5)},      // 20 a second, and 6,000 weight a minute
	"binance-futures": {weightIn(1)},      // 20 a second, of which each is one weight
	"kraken":          {weightIn(1. / 3)}, // one a second, and the counter goes down by a third
	"okx":             {classIn(20)},      // 10 a second, so 20 in two seconds
	"bybit":           {classIn(50)},      // 50 a second
}

func weightIn(unit float64) func(*provider.Charge, string) (float64, bool) {
	return func(c *provider.Charge, _ string) (float64, bool) {
		return float64(c.Cost[provider.Weight]) / unit, true
	}
}

// classIn reads the class of an endpoint: its resource begins with "20/2s".
func classIn(unit float64) func(*provider.Charge, string) (float64, bool) {
	return func(_ *provider.Charge, resource string) (float64, bool) {
		n, _, _ := strings.Cut(resource, "/")
		of, err := strconv.ParseFloat(n, 64)
		return unit / of, err == nil
	}
}

// ccxtDiffers are the calls for which the table has another figure than ccxt, and the reasons.
var ccxtDiffers = map[string][]string{
	"the documentation has a larger weight since": {
		"binance-spot GET /api/v3/trades", "binance-spot GET /api/v3/historicalTrades", "binance-spot GET /api/v3/aggTrades",
		"binance-spot GET /api/v3/ticker",
	},
	"orders cost no weight; ccxt keeps to the limits of orders by it": {
		"binance-futures POST /fapi/v1/order", "binance-futures PUT /fapi/v1/order",
	},
	"history counts two; which calls are history the documentation leaves open": {
		"kraken POST /0/private/ClosedOrders", "kraken POST /0/private/QueryLedgers",
	},
	"more than one each call, at another limiter":     {"kraken POST /0/private/Level3"},
	"a batch may have twenty orders; ccxt counts one": {"okx POST /api/v5/trade/cancel-batch-orders"},
	"the documentation's table of endpoints": {
		"bybit GET /v5/account/contract-transaction-log", "bybit GET /v5/account/info",
		"bybit GET /v5/account/instruments-info", "bybit GET /v5/account/pay-info",
		"bybit GET /v5/account/query-dcp-info", "bybit GET /v5/account/smp-group",
		"bybit GET /v5/account/trade-info-for-analysis", "bybit GET /v5/account/transaction-log",
		"bybit GET /v5/account/user-setting-config", "bybit GET /v5/account/withdrawal",
		"bybit GET /v5/asset/asset-overview", "bybit GET /v5/asset/coin/query-info",
		"bybit GET /v5/asset/covert/small-balance-history", "bybit GET /v5/asset/delivery-record",
		"bybit GET /v5/asset/deposit/query-record", "bybit GET /v5/asset/exchange/convert-result-query",
		"bybit GET /v5/asset/exchange/query-coin-list", "bybit GET /v5/asset/exchange/query-convert-history",
		"bybit GET /v5/asset/fundinghistory", "bybit GET /v5/asset/portfolio-margin",
		"bybit GET /v5/asset/settlement-record", "bybit GET /v5/asset/total-members-assets",
		"bybit GET /v5/asset/transfer/query-account-coins-balance",
		"bybit GET /v5/asset/transfer/query-universal-transfer-list", "bybit GET /v5/asset/withdraw/vasp/list",
		"bybit GET /v5/execution/list", "bybit GET /v5/order/history", "bybit GET /v5/order/realtime",
		"bybit GET /v5/position/closed-pnl", "bybit GET /v5/position/get-closed-positions",
		"bybit GET /v5/position/list", "bybit GET /v5/user/escrow_sub_members", "bybit GET /v5/user/submembers",
		"bybit POST /v5/account/borrow", "bybit POST /v5/account/mmp-modify", "bybit POST /v5/account/mmp-reset",
		"bybit POST /v5/account/no-convert-repay", "bybit POST /v5/account/quick-repayment",
		"bybit POST /v5/account/repay", "bybit POST /v5/account/set-collateral-switch-batch",
		"bybit POST /v5/account/set-margin-mode", "bybit POST /v5/account/upgrade-to-uta",
		"bybit POST /v5/asset/exchange/convert-execute", "bybit POST /v5/asset/exchange/quote-apply",
		"bybit POST /v5/asset/transfer/save-transfer-sub-member", "bybit POST /v5/asset/withdraw/create",
		"bybit POST /v5/order/cancel", "bybit POST /v5/order/cancel-all", "bybit POST /v5/order/create",
		"bybit POST /v5/order/disconnected-cancel-all", "bybit POST /v5/user/agreement",
		"bybit POST /v5/user/create-sub-api", "bybit POST /v5/user/create-sub-member",
	},
}

// TestChargesAgreeWithCCXT compares the table with that of ccxt, which others keep. Each difference
// has a reason.
func TestChargesAgreeWithCCXT(t *testing.T) {
	text, err := os.ReadFile("testdata/ccxt.txt")
	if err != nil {
		t.Fatal(err)
	}
	reason, seen, compared := map[string]string{}, map[string]bool{}, map[string]int{}
	for why, calls := range ccxtDiffers {
		for _, call := range calls {
			reason[call] = why
		}
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if words[0] == "#" {
			continue
		}
		who, call := words[0], strings.Join(words[:3], " ")
		table := provider.ChargesOf(who)
		for _, c := range ccxtCalls(words[3:]) {
			charge, resource := table.Of(ask(t, words[1]+" "+words[2]+c.query))
			if charge == nil {
				continue
			}
			got, ok := ccxtUnits[who].ours(charge, resource)
			if !ok {
				continue
			}
			compared[who]++
			if diff := got - c.cost; (diff > 0.02 || diff < -0.02) && reason[call] == "" {
				t.Errorf("%s%s: %.3f, by %s; ccxt has %.3f", call, c.query, got, charge.On, c.cost)
			} else if diff > 0.02 || diff < -0.02 {
				seen[call] = true
			}
		}
	}
	for call := range reason {
		if !seen[call] {
			t.Errorf("%s agrees by now", call)
		}
	}
	for who, least := range map[string]int{"binance-spot": 40, "binance-futures": 80, "kraken": 40, "okx": 80, "bybit": 20} {
		if compared[who] < least {
			t.Errorf("%s: %d calls compared, want %d", who, compared[who], least)
		}
	}
}

// ccxtCall is a call as ccxt counts it.
type ccxtCall struct {
	query string
	cost  float64
}

func ccxtCalls(words []string) (all []ccxtCall) {
	number := func(s string) float64 {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil {
			panic(err)
		}
		return n
	}
	if !slices.ContainsFunc(words, func(s string) bool { return strings.Contains(s, ":") }) {
		all = append(all, ccxtCall{"?symbol=A", number(words[0])})
	}
	for _, w := range words[1:] {
		if whole, ok := strings.CutPrefix(w, "noSymbol="); ok {
			all = append(all, ccxtCall{"", number(whole)})
		} else if most, n, ok := strings.Cut(w, ":"); ok {
			all = append(all, ccxtCall{fmt.Sprintf("?symbol=A&limit=%s", most), number(n)})
		}
	}
	return all
}
