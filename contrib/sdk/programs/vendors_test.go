package programs

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

var update = flag.Bool("update", false, "write the table of SDKs in docs/proxy-sdks.md; with PACELINE_LONG=1 it is of all of them")

// A vendor is an official SDK of npm, or a well-known one, and the fake that it trusts.
type vendor struct {
	sdk   string // its package, and what follows a comma
	dir   string // the folder with its package: ../node or ../more
	fake  string // a verb of serve, with flags
	limit string // the limit of a burst: the fake's first one if it is empty
}

// Those of ../node are of every run.
var vendors = []vendor{
	{"groq-sdk", "../node", "groq", ""},
	{"openai, of Azure", "../node", "azure-openai", ""},
	{"@mistralai/mistralai", "../node", "mistral", ""},
	{"@google/genai", "../node", "gemini", ""},
	{"stripe", "../node", "stripe", ""},
	{"openai", "../node", "openai --first constant:0s --tokens-per-second 0", ""},
	{"@anthropic-ai/sdk", "../node", "anthropic --first constant:0s --tokens-per-second 0", ""},
	{"@ai-sdk/groq", "../more", "groq", ""},
	{"@ai-sdk/azure", "../more", "azure-openai", ""},
	{"@ai-sdk/mistral", "../more", "mistral", ""},
	{"@ai-sdk/google", "../more", "gemini", ""},
	{"@notionhq/client", "../more", "notion", ""},
	{"@slack/web-api", "../more", "slack", ""},
	{"@octokit/rest", "../more", "github", ""},
	{"@hubspot/api-client", "../more", "hubspot", ""},
	{"@shopify/admin-api-client", "../more", "shopify", "query cost"},
	{"ccxt, binance", "../more", "binance", ""},
	{"ccxt, okx", "../more", "okx", "10/2s"},
	{"ccxt, bybit", "../more", "bybit", ""},
	{"ccxt, kraken", "../more", "kraken --limit public=50/s", "public"},
	{"ccxt, coinbaseexchange", "../more", "coinbase", "public"},
}

// limited is the flag for room in a time.
func (v *vendor) limited(per string) string {
	return strings.TrimPrefix(fmt.Sprintf("%s=%d/%s", v.limit, room, per), "=")
}

// How many calls a burst has, and how many the fake lets through at once.
const (
	burst = 8
	room  = 5
)

// TestVendors: official SDKs trust the fakes. Each call that the SDK has is served, or fails as the vendor makes it fail, without the
// proxy and through it. Of a burst without the proxy the fake refuses what is too much; through the proxy it refuses nothing.
func TestVendors(t *testing.T) {
	rows := make([]string, len(vendors))
	t.Run("sdks", func(t *testing.T) {
		for i, v := range vendors {
			t.Run(v.sdk, func(t *testing.T) {
				if v.dir != "../node" {
					need.LongOnly(t, "five SDKs of many are enough for every run")
				}
				t.Parallel()
				rows[i] = v.row(t, need.Node(t, v.dir))
			})
		}
	})
	vendorTable(t, rows)
}

// row is the line of a vendor in the table of docs/proxy-sdks.md.
func (v *vendor) row(t *testing.T, node string) string {
	verb := strings.Fields(v.fake)
	calls := 0
	for _, by := range []string{"", "through the proxy"} {
		fake := serve(t, verb...)
		to := fake
		if by != "" {
			to = proxied(t, fake, "20/s")
		}
		all := v.says(t, node, to.url)
		if calls = len(all); calls < 4 {
			t.Errorf("%d calls", calls)
		}
		if _, failed := answered(all); failed != "" {
			t.Errorf("calls %s: %s", by, failed)
		}
		if to != fake {
			to.stopped(t)
		}
		if r := endedAs(t, fake); r.Limited != 0 {
			t.Errorf("calls %s: %d refused", by, r.Limited)
		}
	}

	full := serve(t, append(verb, "--limit", v.limited("1h"))...)
	without, _ := answered(v.says(t, node, full.url, strconv.Itoa(burst)))
	if r := endedAs(t, full); without != room || r.Limited == 0 {
		t.Errorf("without the proxy: %d answered of %d, %d refused; want %d answered", without, burst, r.Limited, room)
	}

	busy := serve(t, append(verb, "--limit", v.limited("3s"))...)
	proxy := proxied(t, busy, fmt.Sprintf("%d/3s", room))
	through, failed := answered(v.says(t, node, proxy.url, strconv.Itoa(burst)))
	proxy.stopped(t)
	if r := endedAs(t, busy); through != burst || r.Limited != 0 {
		t.Errorf("through the proxy: %d answered of %d, %d refused: %s", through, burst, r.Limited, failed)
	}
	return fmt.Sprintf("| `%s` | %s | `%s` | %d | %d | %d | %d | %d |", v.sdk, v.version(t), verb[0], calls, without, burst-without,
		through, burst-through)
}

// proxied starts a proxy to a fake, with a limit.
func proxied(t *testing.T, fake *process, limit string) *process {
	t.Helper()
	return start(t, "proxy", "--to", fake.url, "--limit", limit, "--listen", "127.0.0.1:0", "--admin", "off", "--log", "off")
}

// says runs the calls of the SDK.
func (v *vendor) says(t *testing.T, node string, args ...string) []told {
	t.Helper()
	all, err := said(time.Minute, nil, v.dir, nil, append([]string{node, "vendors.mjs", v.sdk}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// answered counts the calls without an error, and describes the others.
func answered(calls []told) (n int, failed string) {
	for _, c := range calls {
		if c.Error == nil {
			n++
		} else {
			failed += fmt.Sprintf("\n%s: %d %s", c.Call, c.Error.Status, c.Error.Message)
		}
	}
	return n, failed
}

// judged is what the judges of packages service and llm have in common.
type judged struct {
	Limited, Wrong int
	Verdicts       map[string]int // of llm alone
}

// endedAs ends a fake and reads what its judge says.
func endedAs(t *testing.T, p *process) (r judged) {
	t.Helper()
	p.stopped(t)
	if err := json.Unmarshal(p.out.Bytes(), &r); err != nil || r.Wrong != 0 {
		t.Errorf("%v: %s", err, p.out.String())
	}
	r.Limited += r.Verdicts["limited"]
	return r
}

// version is that of the SDK in its package.json.
func (v *vendor) version(t *testing.T) string {
	t.Helper()
	name, _, _ := strings.Cut(v.sdk, ",")
	var lock struct {
		Packages map[string]struct{ Version string }
	}
	text, err := os.ReadFile(filepath.Join(v.dir, "package-lock.json"))
	if err := errors.Join(err, json.Unmarshal(text, &lock)); err != nil {
		t.Fatal(err)
	}
	return lock.Packages["node_modules/"+name].Version
}

const (
	tableHead = "| SDK | version | `paceline serve …` | calls | answered | refused | answered | refused |\n|---|---|---|---|---|---|---|---|\n"
	tablePage = "../../../docs/proxy-sdks.md"
)

// vendorTable compares the rows with the page's, and writes them with -update. A row that has not been measured stays as it is.
func vendorTable(t *testing.T, rows []string) {
	text, err := os.ReadFile(tablePage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), tableHead)
	if !found {
		t.Fatalf("%s has no table of SDKs", tablePage)
	}
	old, after, _ := strings.Cut(rest, "\n\n")
	lines := strings.Split(old, "\n")
	var all []string
	for i, row := range rows {
		name := "| `" + vendors[i].sdk + "` |"
		had := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, name) })
		switch {
		case row == "" && had >= 0:
			row = lines[had]
		case row == "" && had < 0:
			continue
		case !*update && !t.Failed() && (had < 0 || lines[had] != row):
			t.Errorf("%s has another row than\n%s\nrun with -update", tablePage, row)
		}
		all = append(all, row)
	}
	if *update && !t.Failed() {
		page := before + tableHead + strings.Join(all, "\n") + "\n\n" + after
		if err := os.WriteFile(tablePage, []byte(page), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
