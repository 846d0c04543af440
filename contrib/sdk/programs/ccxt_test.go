package programs

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// exchange is a market of ccxt, the fake of its API, and what the proxy is to get of its limits at least, as a multiple of
// the answers that ccxt's own throttler gets.
type exchange struct {
	id, symbol, fake, preset string
	times                    float64
}

// Binance and Bybit allow more than four times what the throttler takes. The others' limits are near to it.
var exchanges = []exchange{
	{"binance", "BTC/USDT", "binance-spot", "binance", 4},
	{"okx", "BTC/USDT", "okx", "okx", 1},
	{"bybit", "BTC/USDT", "bybit", "bybit", 4},
	{"kraken", "BTC/USD", "kraken", "kraken:pro", 0.8},
	{"coinbaseexchange", "BTC/USD", "coinbase", "coinbase", 1},
}

const (
	exchangesFor  = 10 * time.Second
	exchangesHead = "| ccxt | preset | own throttler | through the proxy | refused |\n|---|---|---|---|---|\n"
)

var exchangeRow = regexp.MustCompile(`(?m)^\| .([a-z]+). \| .[a-z:]+. \| \d+ \| \d+ \| 0 \|$`)

// TestExchangesOfCCXT: ccxt asks for an order book 40 at once, for ten seconds. Without its own throttler and through the proxy
// with the exchange's preset it is refused nothing, and gets the exchange's limit.
func TestExchangesOfCCXT(t *testing.T) {
	need.LongOnly(t, "ten seconds of each exchange, twice")
	node := need.Node(t, "../more")
	rows := exchangesHead
	for _, x := range exchanges {
		own := x.asks(t, node, "throttled", serve(t, x.fake))
		fake := serve(t, x.fake)
		proxy := start(t, "proxy", "--to", fake.url, "--preset", x.preset, "--listen", "127.0.0.1:0", "--admin", "off", "--log", "off")
		through := x.asks(t, node, "free", proxy)
		proxy.stopped(t)
		r := endedAs(t, fake)
		t.Logf("%s: %d by its own throttler, %d through the proxy, %d refused", x.id, own, through, r.Limited)
		if r.Limited != 0 || float64(through) < x.times*float64(own) {
			t.Errorf("%s: %d refused, %d answers, want %v times %d", x.id, r.Limited, through, x.times, own)
		}
		rows += fmt.Sprintf("| `%s` | `%s` | %d | %d | %d |\n", x.id, x.preset, own, through, r.Limited)
	}
	text, err := os.ReadFile(tablePage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), exchangesHead)
	old, after, _ := strings.Cut(rest, "\n\n")
	if !found || !*update && len(exchangeRow.FindAllString(old, -1)) != len(exchanges) {
		t.Errorf("%s has no row for each exchange, with nothing refused", tablePage)
	}
	if *update && found {
		if err := os.WriteFile(tablePage, []byte(before+rows+"\n"+after), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// asks returns how many answers ccxt got.
func (x *exchange) asks(t *testing.T, node, how string, at *process) int {
	t.Helper()
	all, err := said(2*time.Minute, nil, "../more", nil, node, "exchanges.mjs", x.id, x.symbol, at.url,
		strconv.FormatInt(exchangesFor.Milliseconds(), 10), how)
	if err != nil || len(all) != 1 {
		t.Fatalf("%s, %s: %d lines, %v", x.id, how, len(all), err)
	}
	if all[0].Error != nil && how == "free" {
		t.Errorf("%s, %s: %s", x.id, how, all[0].Error.Message)
	}
	return all[0].Size
}
