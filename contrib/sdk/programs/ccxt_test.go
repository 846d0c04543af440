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
		own := x.asks(t, "throttled", serve(t, x.fake), nil, node)
		fake := serve(t, x.fake)
		proxy := start(t, "proxy", "--to", fake.url, "--preset", x.preset, "--listen", "127.0.0.1:0", "--admin", "off", "--log", "off")
		through := x.asks(t, "free", proxy, nil, node)
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

// TestExchangesByExec: ccxt asks the exchange's server, knows of no proxy, and runs by `paceline exec`. It is refused nothing.
func TestExchangesByExec(t *testing.T) {
	need.LongOnly(t, "ten seconds of each exchange")
	node := need.Node(t, "../more")
	paceline, err := built()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range exchanges {
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		env := []string{"XDG_RUNTIME_DIR=" + dir, "XDG_STATE_HOME=" + dir, "HOME=" + dir, "PATH=" + os.Getenv("PATH")}
		fake := serve(t, x.fake)
		n := x.asks(t, "free", fake, env, paceline, "exec", "--preset", x.preset, "--to", fake.url, "--", node)
		r := endedAs(t, fake)
		if t.Logf("%s: %d answers, %d refused", x.id, n, r.Limited); r.Limited != 0 || n == 0 {
			t.Errorf("%s: %d refused, %d answers", x.id, r.Limited, n)
		}
		if out, err := output(time.Minute, nil, dir, env, paceline, "daemon", "stop"); err != nil {
			t.Errorf("the daemon does not stop: %v\n%s", err, out)
		}
	}
}

// asks returns how many answers ccxt got.
func (x *exchange) asks(t *testing.T, how string, at *process, env []string, node ...string) int {
	t.Helper()
	all, err := said(2*time.Minute, nil, "../more", env, append(node, "exchanges.mjs", x.id, x.symbol, at.url,
		strconv.FormatInt(exchangesFor.Milliseconds(), 10), how)...)
	if err != nil || len(all) != 1 {
		t.Fatalf("%s, %s: %d lines, %v", x.id, how, len(all), err)
	}
	if all[0].Error != nil && how == "free" {
		t.Errorf("%s, %s: %s", x.id, how, all[0].Error.Message)
	}
	return all[0].Size
}
