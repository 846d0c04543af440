package dashboard_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/testkit/browser"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/observe/dashboard"
)

// open opens a browser with a page of those sources.
func open(t *testing.T, wide int, sources ...observe.Source) (*browser.Page, *dashboard.Page) {
	t.Helper()
	b := browser.Open(t, wide, 1000)
	p, done := show(t, b, sources...)
	t.Cleanup(done)
	return b, p
}

// show serves a page, with the name of its first source as a line beside it, and has the browser open it. Until done
// the browser must not complain, nor ask for anything elsewhere.
func show(t *testing.T, b *browser.Page, sources ...observe.Source) (p *dashboard.Page, done func()) {
	t.Helper()
	beside := func() []string {
		return slices.DeleteFunc([]string{sources[0].Snapshot().Name}, func(s string) bool { return s == "" })
	}
	p = must(t, dashboard.Config{Sources: sources, Beside: beside, Title: "A <title> & more"})
	server := httptest.NewServer(http.StripPrefix("/debug", p))
	before := len(b.Asked())
	b.Go(server.URL + "/debug/")
	b.Until(live)
	return p, func() {
		t.Helper()
		asked := b.Asked()[before:]
		for _, url := range asked {
			if !strings.HasPrefix(url, server.URL+"/debug/") {
				t.Errorf("it asks for %s", url)
			}
		}
		if len(asked) < 8 { // the page, its seven parts
			t.Errorf("it asks for %q only", asked)
		}
		for _, c := range b.Complaints() {
			t.Errorf("the browser says: %s", c)
		}
		b.Go("about:blank")
		b.Forgive()
		p.Close()
		server.Close()
	}
}

const live = `!document.getElementById("main").hidden && document.querySelector("#link .mark").dataset.mark === "ok"`

// rows returns the text of a table's body, cell by cell, its parts separated by a bar.
func rows(b *browser.Page, id string) (all [][]string) {
	b.Eval(`[...document.querySelectorAll("#`+id+`-table tbody tr")].map(tr => [...tr.cells].map(c =>
		[...c.querySelectorAll("bdi")].map(e => e.textContent.replaceAll("\u00a0", " ")).filter(Boolean).join("|") || c.textContent))`, &all)
	return all
}

func texts(b *browser.Page, ids ...string) []string {
	var all []string
	for _, id := range ids {
		var s string
		b.Eval(fmt.Sprintf(`document.getElementById(%q).textContent.replaceAll("\u00a0", " ")`, id), &s)
		all = append(all, s)
	}
	return all
}

// The page shows the content of the Snapshot, and follows its changes.
func TestPageSaysWhatTheSnapshotSays(t *testing.T) {
	s := &source{}
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	host := observe.Whose{Host: "api.example.com", Key: "k1"}
	say := func(waiting int, sent int64) {
		s.say(func(now time.Time) observe.Snapshot {
			return observe.Snapshot{
				Name: "example", At: now, Since: day, Waiting: waiting, InFlight: 3, LongestWait: 4200 * time.Millisecond, Resent: 6, Bounds: bounds,
				Counts: observe.Counts{Sent: sent, Accepted: sent - 20, Limited: 8, Failed: 9, Late: 5, Used: observe.Amounts{Tokens: 123_456, Money: 2_500_000}},
				Limits: []observe.LimitState{
					{Whose: host, Name: "requests", Unit: "requests", Used: 57, Open: 3, Allowed: 60, Window: time.Minute, PerWindow: 60, Share: 0.999, Next: now.Add(90 * time.Second), Waiting: waiting},
					{Name: "day", Unit: "money", Used: 2_500_000, Allowed: 5_000_000, Window: 24 * time.Hour, PerWindow: 5_000_000, Recent: 9_500_000, Share: 1},
					{Whose: observe.Whose{Client: "ann"}, Name: "concurrency", Unit: "in flight", Used: 3, Allowed: 3, Share: 0.004, NextUnknown: true},
					{Whose: observe.Whose{Host: "b", Model: "m", Route: "GET /x"}, Name: "requests", Unit: "requests", Allowed: 10, Window: time.Second, PerWindow: 5, PausedUntil: now.Add(time.Hour), Why: "429"},
				},
				Clients: []observe.ClientState{
					{Name: "ann", Waiting: waiting, InFlight: 2, LongestWait: 4200 * time.Millisecond, Weight: 3, Share: 0.75, LastGoes: now.Add(30 * time.Minute), Counts: observe.Counts{Accepted: 1234, Limited: 7}},
					{Name: "bob", Weight: 1, Share: 0.25, Counts: observe.Counts{Accepted: 411}},
				},
				Keys: []observe.KeyState{
					{Host: "api.example.com", Name: "k1", State: observe.KeyOK, InFlight: 3, Counts: observe.Counts{Accepted: 1000}},
					{Host: "api.example.com", Name: "k2", State: observe.KeyNoCredit, Why: "insufficient_quota", Counts: observe.Counts{Limited: 1}},
				},
				Paused:   []observe.PauseState{{Whose: observe.Whose{Host: "b"}, Since: now.Add(-time.Minute), Until: now.Add(time.Hour), Next: now.Add(time.Hour), Why: "429"}},
				Waits:    []observe.WaitTimes{{Limit: "requests", Client: "ann", Times: observe.Times{Count: 10, Sum: 40 * time.Second, Upto: within(10, 4096*time.Millisecond)}}, {Limit: "requests", Client: "bob", Times: observe.Times{Count: 10, Sum: 20 * time.Second, Upto: within(10, 4096*time.Millisecond)}}},
				Upstream: []observe.UpstreamTimes{{Host: "api.example.com", P50: 12 * time.Millisecond, P90: 340 * time.Millisecond, P99: 5600 * time.Millisecond, Max: 2 * time.Minute, Times: times(sent, 12*time.Millisecond)}},
				Events:   []observe.Event{{Number: 1, At: day, Last: now.Add(-time.Second), Kind: observe.EventRefused, Whose: host, Text: "refused: 60 requests a minute", Count: 8}},
			}
		})
	}
	say(1500, 12_345)
	b, _ := open(t, 1600, s)
	for id, want := range map[string]string{
		"title": "A <title> & more", "tile-waiting": "1,500", "tile-longest": "the first for 4.2 s", "tile-flight": "3", "tile-sent": "12,345 sent in all", "tile-share": "99 % of the ceiling",
		"tile-refused-all": "in 15 min, 8 in all", "tile-tokens-all": "123,456 in all", "tile-money-all": "2.50 in all",
		"verdict-text": "●As fast as the server allows, 99 % of the ceiling of requests of api.example.com, key k1: 1,500 wait",
	} {
		if got := texts(b, id)[0]; got != want {
			t.Errorf("%s is %q, want %q", id, got, want)
		}
	}
	compare := func(id, want string) {
		t.Helper()
		got := rows(b, id)
		lines := strings.Split(strings.TrimSpace(want), "\n")
		if len(got) != len(lines) {
			t.Errorf("%s has %d rows, want %d: %q", id, len(got), len(lines), got)
			return
		}
		for i, line := range lines {
			for k, cell := range strings.Split(strings.TrimSpace(line), " ; ") {
				if cell != "*" && cell != got[i][k] {
					t.Errorf("%s, row %d, cell %d is %q, want %q", id, i, k, got[i][k], cell)
				}
			}
		}
	}
	compare("limits", `
		requests|api.example.com, key k1 · 60 in 1 min ; 57 of 60|3 not answered ; 99 % ; * ; 1,500
		requests|b, model m, GET /x · 5 in 1.0 s ; 0 of 10 ; 0 % ; * ; 0
		day (money)|5.00 in 24 h ; 2.50 of 5.00 ; 100 %|190 % with what it held ; now ; 0
		concurrency (in flight)|client ann ; 3 of 3 ; 0.4 % ; when an answer comes ; 0`)
	if got := rows(b, "limits"); !strings.HasPrefix(got[0][3], "in 1 min 30 s|") || !strings.HasPrefix(got[1][3], "away until ") || !strings.HasSuffix(got[1][3], "|in 1 h: 429") {
		t.Errorf("the next go %q and %q", got[0][3], got[1][3])
	}
	compare("clients", `
		ann|weight 3 ; 1,500 ; 4.2 s ; * ; 75 % ; 2 ; 1,234 ; 7
		bob ; 0 ; – ; – ; 25 % ; 0 ; 411 ; 0`)
	if got := rows(b, "clients")[0][3]; !strings.HasPrefix(got, "in 30 min · ") {
		t.Errorf("the last goes %q", got)
	}
	compare("keys", `
		k2|api.example.com ; no credit|insufficient_quota ; 0 ; 0 ; 1
		k1|api.example.com ; ok ; 3 ; 1,000 ; 0`)
	compare("waits", `requests ; 20 ; 3.0 s ; 3.1 s ; 4.1 s`)
	compare("upstream", `api.example.com ; 12,345 ; 12 ms ; 340 ms ; 5.6 s ; 2 min`)
	compare("counts", `
		served ; 12,325 ; –
		refused by a limit of the server ; 8 ; 0
		failed ; 9 ; 0
		sent again ; 6 ; –
		sent, all of them ; 12,345 ; *
		told that it would take too long ; 5 ; –`)
	if got := rows(b, "events"); len(got) != 1 || got[0][1] != "refused" || !strings.HasPrefix(got[0][2], "refused: 60 requests a minute|api.example.com, key k1 · 8 times since 1 Mar ") {
		t.Errorf("the events are %q", got)
	}
	if got := rows(b, "paused"); len(got) != 1 || got[0][0] != "b" || got[0][1] != "429" || !strings.HasSuffix(got[0][2], "|in 1 h") || !strings.HasSuffix(got[0][3], "|1 min ago") {
		t.Errorf("paused are %q", got)
	}
	b.Until(`document.querySelector("#chart-rate b").textContent === "0"`) // the second point is there
	b.Eval(`document.querySelector("#clients-table tbody tr").mine = true`, nil)
	say(0, 22_345)
	b.Until(`document.getElementById("tile-waiting").textContent === "0" && document.getElementById("tile-sent").textContent.startsWith("22,345")`)
	if got := texts(b, "verdict-text")[0]; got != "●Nothing waits: what comes goes at once; 100 % of the ceiling of day (money) is used" {
		t.Errorf("then it says %q", got)
	}
	b.Until(`[...document.querySelectorAll("#clients-table tr")].some(tr => tr.mine && tr.cells[1].textContent === "0")`) // the same row
	b.Until(`document.getElementById("tile-rate").textContent === "–"`)                                                   // more than 60 a minute lasts for no rate
}

func within(n int64, d time.Duration) (upto []int64) {
	for _, b := range bounds {
		if b >= d {
			upto = append(upto, n)
		} else {
			upto = append(upto, 0)
		}
	}
	return upto
}

// The server goes away and comes back at the same address: the page says that it is old, then goes on, with what it
// knew.
func TestPageSurvivesARestart(t *testing.T) {
	need.NotShort(t, "what the page does without its server changes with the page alone")
	b := browser.Open(t, 1000, 1000)
	s := fixed(observe.Snapshot{Since: time.Now().Add(-time.Hour), Waiting: 1, Counts: observe.Counts{Sent: 1000},
		Events: []observe.Event{{Number: 1, Last: time.Now(), Kind: observe.EventRefused, Text: "before", Count: 1}}})
	begin := func(s *source, addr string, backfill time.Duration) (*http.Server, *dashboard.Page, string) {
		l, err := net.Listen("tcp", addr)
		for i := 0; err != nil && i < 100; i++ { // somebody may have taken it for a moment
			time.Sleep(50 * time.Millisecond)
			l, err = net.Listen("tcp", addr)
		}
		if err != nil {
			t.Fatal(err)
		}
		p := must(t, dashboard.Config{Sources: []observe.Source{s}})
		p.Backfill(backfill, func(int, time.Time) observe.Snapshot { return s.Snapshot() })
		server := &http.Server{Handler: p}
		go func() { _ = server.Serve(l) }()
		return server, p, l.Addr().String()
	}
	server, p, addr := begin(s, "127.0.0.1:0", 5*time.Minute)
	b.Go("http://" + addr + "/")
	b.Until(live)
	var points int
	count := `(document.querySelector("#chart-waiting details").open = true, new Promise(go => setTimeout(() => go(document.querySelectorAll("#chart-waiting tbody tr").length), 100)))`
	b.Eval(count, &points)
	if points < 5 {
		t.Fatalf("the chart has %d minutes", points)
	}
	p.Close()
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	b.Until(`!document.getElementById("stale").hidden && document.querySelector("#link .mark").dataset.mark === "stop"`)
	if got := texts(b, "stale", "said", "tile-waiting"); !strings.HasPrefix(got[0], "Nothing from the server for ") || !strings.Contains(got[1], "old") || got[2] != "1" {
		t.Errorf("while the server is away it says %q", got)
	}
	s = fixed(observe.Snapshot{Since: time.Now(), Waiting: 7, Events: []observe.Event{{Number: 1, Last: time.Now(), Kind: observe.EventBack, Text: "after", Count: 1}}})
	server, _, _ = begin(s, addr, 0)
	defer server.Close()
	b.Until(live + ` && document.getElementById("stale").hidden && document.getElementById("tile-waiting").textContent === "7"`)
	if got := rows(b, "events"); len(got) != 2 || !strings.HasPrefix(got[0][2], "after") || !strings.HasPrefix(got[1][2], "before") {
		t.Errorf("the events are %q", got)
	}
	var then int
	b.Eval(count, &then)
	if then < points {
		t.Errorf("the chart had %d minutes, and has %d after the restart", points, then)
	}
	for _, c := range b.Complaints() {
		if !strings.Contains(c, "net::ERR_") { // that the server was away
			t.Errorf("the browser says: %s", c)
		}
	}
}

// Names that are markup are text, and none of them makes the page wider than it is.
func TestHostileNames(t *testing.T) {
	b := browser.Open(t, 420, 1000)
	for _, name := range []string{`<img src=x onerror="document.title='owned'">`, `</td></table><script>document.title='owned'</script>`, "\u202egnol \x00\x01\n\n\ttab", strings.Repeat("W", 5000), "__proto__", "javascript:alert(1)"} {
		w := observe.Whose{Host: name, Key: name, Model: name, Route: name, Client: name}
		s := observe.Snapshot{Name: name, Waiting: 1, Counts: observe.Counts{Sent: 2},
			Limits:   []observe.LimitState{{Whose: w, Name: name, Unit: name, Why: name, Waiting: 1, Allowed: 1, PausedUntil: time.Now().Add(time.Hour)}},
			Clients:  []observe.ClientState{{Name: name, Waiting: 1}},
			Keys:     []observe.KeyState{{Host: name, Name: name, State: name, Why: name}},
			Paused:   []observe.PauseState{{Whose: w, Why: name}},
			Waits:    []observe.WaitTimes{{Limit: name, Client: name, Times: observe.Times{Count: 1}}},
			Upstream: []observe.UpstreamTimes{{Host: name, Times: observe.Times{Count: 1}}},
			Events:   []observe.Event{{Kind: name, Whose: w, Text: name}},
		}
		two := s
		two.Name = "two"
		_, done := show(t, b, fixed(s), fixed(two))
		var saw struct {
			Title          string
			Scripts, Imgs  int
			Over           float64
			Client, Source string
			Beside         string
		}
		b.Eval(`({title: document.title, scripts: document.scripts.length, imgs: document.images.length, over: document.documentElement.scrollWidth - innerWidth,
			client: document.querySelector("#clients-table tbody th bdi").textContent, beside: document.querySelector("#beside-lines li").textContent, source: document.querySelector("#sources-table button").textContent})`, &saw)
		if line := saw.Beside; line != name && (len(name) <= 300 || line != name[:300]+"…") {
			t.Errorf("%.40q: the line beside is %.400q", name, line)
		}
		if want := strings.ReplaceAll(name, "\x00", "\u0000"); saw.Scripts != 3 || saw.Imgs != 0 || saw.Over > 0 || saw.Client != want || saw.Source != want || strings.Contains(saw.Title, "owned") && !strings.Contains(name, saw.Title[len("1 in line – "):]) {
			t.Errorf("%.40q: %.200q", name, fmt.Sprintf("%+v", saw))
		}
		done()
	}
}

// A thousand clients: the first are shown, and all of them are found by who wants to, with keys alone.
func TestAllClients(t *testing.T) {
	need.NotShort(t, "TestPageSaysWhatTheSnapshotSays reads the same tables")
	s := &source{of: story(1000)}
	b, _ := open(t, 1600, s)
	b.Until(`document.querySelectorAll("#clients-table tbody tr").length === 51`)
	if got := rows(b, "clients"); got[50][0] != "950 more" || got[50][6] == "0" {
		t.Errorf("the last row is %q", got[50])
	}
	b.Eval(`document.querySelector("#clients-more button").focus()`, nil)
	b.Press("Enter")
	b.Until(`document.querySelectorAll("#clients-table tbody tr").length === 500 && document.activeElement.type === "search"`)
	if got := texts(b, "clients-more")[0]; !strings.Contains(got, "1 to 500 of 1,000") {
		t.Errorf("it says %q", got)
	}
	b.Eval(`(i => { i.value = "client-99"; i.dispatchEvent(new Event("input")) })(document.activeElement)`, nil)
	b.Until(`document.querySelectorAll("#clients-table tbody tr").length === 10`)
	for _, r := range rows(b, "clients") {
		if !strings.HasPrefix(r[0], "client-99") {
			t.Errorf("it finds %q", r)
		}
	}
	b.Eval(`(i => { i.value = ""; i.dispatchEvent(new Event("input")) })(document.activeElement)`, nil)
	b.Until(`document.querySelectorAll("#clients-table tbody tr").length === 500`)
	b.Press("Tab") // Back cannot be pressed on the first
	b.Press("Enter")
	b.Until(`document.getElementById("clients-more").textContent.includes("501 to 1,000 of 1,000")`)
	b.Eval(`document.querySelector("#clients-more button").click()`, nil)
	b.Until(`document.querySelectorAll("#clients-table tbody tr").length === 51`)
}

var update = flag.Bool("update", false, "make docs/img/page.png anew")

// In every size and scheme nothing is wider than the page, and all text can be read: contrast 4.5, as WCAG 2.2 AA has
// it.
func TestLooks(t *testing.T) {
	need.NotShort(t, "looks change with the page alone")
	shots := os.Getenv("PACELINE_SHOTS") // a folder for pictures to look at
	b := browser.Open(t, 1600, 1000)
	few, many := story(8), story(1000)
	nothing := func(now time.Time) observe.Snapshot {
		return observe.Snapshot{Name: "api.anthropic.com", At: now, Since: now}
	}
	for name, of := range map[string][]func(time.Time) observe.Snapshot{"few": {few}, "many": {many}, "two": {few, nothing}, "empty": {nothing}} {
		t.Run(name, func(t *testing.T) {
			var sources []observe.Source
			for _, f := range of {
				sources = append(sources, &source{of: f})
			}
			p, done := show(t, b, sources...)
			defer done()
			if name != "empty" {
				p.Backfill(14*time.Minute, func(i int, at time.Time) observe.Snapshot { return of[i](at) })
			}
			for scheme, widths := range map[string][]int{
				"light": need.Fewer([]int{420}, []int{420, 1000, 1600}),
				"dark":  need.Fewer([]int{1600}, []int{420, 1000, 1600}),
			} {
				if other := map[string]string{"two": "dark", "empty": "light"}[name]; need.Fewer(other == scheme, false) {
					continue // few and many have both
				}
				b.Scheme(scheme)
				for _, wide := range widths {
					b.Size(wide, 1000)
					b.Reload()
					b.Until(live + ` && document.querySelector("#chart-rate canvas") && innerWidth === ` + fmt.Sprint(wide))
					var saw struct {
						Over float64
						Dim  []string
						Cut  []string
						High float64
					}
					b.Eval(looks, &saw)
					if saw.Over > 0 || len(saw.Dim)+len(saw.Cut) > 0 {
						t.Errorf("%s, %d px: %v px too wide; hard to read: %q; cut off: %q", scheme, wide, saw.Over, saw.Dim, saw.Cut)
					}
					if saw.High > 1000 { // however many clients there are
						t.Errorf("%s, %d px: a section is %v px high, behind which nobody finds the next", scheme, wide, saw.High)
					}
					if *update && name == "few" && scheme == "light" && wide == 1600 {
						b.Eval(`document.getElementById("title").textContent = "Paceline"`, nil)
						b.Size(1400, 1000)
						b.Screenshot("../../docs/img/page.png")
						shrink(t, "../../docs/img/page.png", 1080)
						b.Size(wide, 1000)
					}
					if shots != "" {
						b.Screenshot(filepath.Join(shots, fmt.Sprintf("%s-%s-%d.png", name, scheme, wide)))
					}
				}
			}
		})
	}
}

// shrink makes a picture of that height, with as many colours as fit a byte: the most frequent
// ones, and for the others the nearest of them.
func shrink(t *testing.T, file string, high int) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	full, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	b := image.Rect(0, 0, full.Bounds().Dx(), min(high, full.Bounds().Dy()))
	count := map[color.Color]int{}
	for y := range b.Dy() {
		for x := range b.Dx() {
			count[full.At(x, y)]++
		}
	}
	all := slices.SortedFunc(maps.Keys(count), func(a, b color.Color) int { return count[b] - count[a] })
	small := image.NewPaletted(b, color.Palette(all[:min(len(all), 256)]))
	draw.Draw(small, b, full, image.Point{}, draw.Src)
	out, err := os.Create(file)
	if err == nil {
		err = errors.Join((&png.Encoder{CompressionLevel: png.BestCompression}).Encode(out, small), out.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// looks measures the page: how much wider it is than its window, and which texts have too little contrast or do not
// fit.
const looks = `(() => {
	const light = c => { const [r, g, b] = c.match(/[\d.]+/g).map(Number).map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b };
	const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!/, 0\)$/.test(c)) return c } return "rgb(255, 255, 255)" };
	const dim = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let n; n = walk.nextNode();) {
		const e = n.parentElement;
		if (!n.textContent.trim() || !e.checkVisibility() || e.disabled) continue;
		const a = light(getComputedStyle(e).color), b = light(ground(e)), ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
		if (ratio < 4.5) dim.push(n.textContent.trim().slice(0, 30) + " " + ratio.toFixed(2));
	}
	const cut = [...document.querySelectorAll("dd, dt, td, th, h1, h2, caption, li, button")].filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline" && getComputedStyle(e.closest("thead") || e).position !== "absolute").map(e => e.textContent.slice(0, 30));
	const high = Math.max(...[...document.querySelectorAll("section.card")].map(e => e.offsetHeight));
	return {over: document.documentElement.scrollWidth - innerWidth, dim, cut, high};
})()`

// A screen reader finds tables with captions, headings of rows and columns, and names of buttons,
// on a telephone too. Without a mouse, every control can be reached and its focus seen.
func TestAccessible(t *testing.T) {
	need.NotShort(t, "what a screen reader finds changes with the page alone")
	b := browser.Open(t, 1600, 1000)
	for _, wide := range need.Fewer([]int{420}, []int{1600, 420}) {
		b.Size(wide, 1000)
		_, done := show(t, b, &source{of: story(60)}, fixed(observe.Snapshot{Name: "other"}))
		b.Until(`document.querySelectorAll("#clients-table tbody tr").length === 51`)
		all := b.Accessible()
		count := map[string]int{}
		for _, n := range all {
			count[n.Role]++
			switch n.Role {
			case "button", "link", "searchbox", "image", "img", "table", "main", "region":
				if n.Name == "" && n.Role != "main" {
					t.Errorf("%d px: there is a %s without a name", wide, n.Role)
				}
			}
		}
		for _, want := range []browser.Node{
			{Role: "table", Name: "Limits"}, {Role: "table", Name: "Clients: who waits"}, {Role: "table", Name: "What happened, the latest first"}, {Role: "table", Name: "Keys"}, {Role: "table", Name: "Sources"},
			{Role: "columnheader", Name: "Used now"}, {Role: "rowheader", Name: "client-059"}, {Role: "heading", Name: "A <title> & more"}, {Role: "button", Name: "Show all 60"}, {Role: "link", Name: "To the limits"},
		} {
			if !slices.Contains(all, want) {
				t.Errorf("%d px: a screen reader finds no %s %q", wide, want.Role, want.Name)
			}
		}
		if count["row"] < 60 || count["cell"] < 300 {
			t.Errorf("%d px: it finds %d rows, %d cells", wide, count["row"], count["cell"])
		}
		if !slices.ContainsFunc(all, func(n browser.Node) bool {
			return strings.HasPrefix(n.Name, "Requests a second over the last 15 minutes: sent, ")
		}) {
			t.Errorf("%d px: no chart says what it shows", wide)
		}
		var live []string
		b.Eval(`[...document.querySelectorAll("[aria-live], [role=status], [role=alert]")].filter(e => e.checkVisibility()).map(e => e.id)`, &live)
		if !slices.Equal(live, []string{"said"}) {
			t.Errorf("%d px: what is told at once is %q", wide, live)
		}
		// With Tab alone: what has the focus shows it.
		seen := map[string]bool{}
		for range 40 {
			b.Press("Tab")
			var at struct{ What, Outline string }
			b.Eval(`(e => ({what: e.id || e.tagName + " " + (e.getAttribute("aria-label") || e.textContent).slice(0, 30), outline: getComputedStyle(e).outlineStyle}))(document.activeElement)`, &at)
			if seen[at.What] = true; at.Outline == "none" && !strings.HasPrefix(at.What, "BODY") {
				t.Logf("%d px: %s has the focus, and does not show it yet", wide, at.What)
				b.Until(`getComputedStyle(document.activeElement).outlineStyle !== "none"`) // a busy machine styles later
			}
		}
		for _, want := range []string{"A To the limits", "BUTTON api.openai.com", "BUTTON other", "DIV What happened", "DIV Requests a second over the las", "SUMMARY As a table", "BUTTON Show all 60", "A snapshot.json"} {
			if !seen[want] {
				t.Errorf("%d px: Tab does not reach %q", wide, want)
			}
		}
		b.Eval(`document.querySelectorAll("#sources-table button")[1].focus()`, nil)
		b.Press("Enter")
		b.Until(`document.getElementById("verdict").dataset.kind === "nothing"`)
		var current string
		b.Eval(`document.querySelector("[aria-current=true]").textContent`, &current)
		if current != "other" {
			t.Errorf("%d px: %q is shown", wide, current)
		}
		done()
	}
}

// A chart is read with the arrow keys.
func TestChartByKeys(t *testing.T) {
	need.NotShort(t, "keys change with the page alone")
	b, p := open(t, 1000, &source{of: story(3)})
	p.Backfill(10*time.Minute, func(_ int, at time.Time) observe.Snapshot { return story(3)(at) })
	b.Reload()
	b.Until(live + ` && document.querySelector("#chart-waiting canvas")`)
	b.Eval(`document.querySelector("#chart-waiting .plot").focus()`, nil)
	when := func() string {
		var s string
		b.Eval(`document.querySelector("#chart-waiting .when").textContent`, &s)
		return s
	}
	if got := when(); got != "" {
		t.Errorf("before a key it says %q", got)
	}
	b.Press("Home")
	b.Until(`document.querySelector("#chart-waiting .when").textContent !== ""`)
	first := when()
	b.Press("ArrowRight")
	b.Until(`document.querySelector("#chart-waiting .when").textContent !== ` + fmt.Sprintf("%q", first))
	b.Press("Escape")
	b.Until(`document.querySelector("#chart-waiting .when").textContent === ""`)
}

// A real Gate in a server that allows 20 an hour. The page shows the content of its Snapshot,
// before and after an answer.
func TestPageOfAGate(t *testing.T) {
	rate, err := limit.NewRolling(limit.RollingConfig{Limit: 20, Window: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	g := paceline.NewGate(rate)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	permits := make(chan paceline.Permit, 50)
	for range 50 {
		all.Go(func() {
			if p, err := g.Wait(ctx, limit.One); err == nil {
				permits <- p
			}
		})
	}
	b, _ := open(t, 1000, g)
	same := func() {
		t.Helper()
		s := g.Snapshot()
		l := s.Limits[0]
		want := []string{number(s.Waiting), number(s.InFlight), number(int(s.Sent)) + " sent in all", "in 15 min, " + number(int(s.Limited)) + " in all"}
		b.Until(fmt.Sprintf(`document.getElementById("tile-refused-all").textContent === %q && document.getElementById("tile-waiting").textContent === %q`, want[3], want[0]))
		if got := texts(b, "tile-waiting", "tile-flight", "tile-sent", "tile-refused-all"); !slices.Equal(got, want) {
			t.Errorf("the page says %q, the Snapshot %q", got, want)
		}
		got := rows(b, "limits")
		if used := fmt.Sprintf("%d of %d", l.Used, l.Allowed); len(got) != 1 || !strings.HasPrefix(got[0][1], used) || got[0][4] != number(l.Waiting) || got[0][0] != "requests|20 in 1 h" {
			t.Errorf("the limit is %q, want %s", got, used)
		}
		if c := rows(b, "clients"); len(c) != 1 || c[0][1] != number(s.Clients[0].Waiting) || c[0][5] != number(s.Clients[0].InFlight) || c[0][6] != number(int(s.Clients[0].Accepted)) {
			t.Errorf("the clients are %q", c)
		}
	}
	b.Until(`document.getElementById("tile-waiting").textContent === "30"`)
	same()
	for i := range 20 {
		p := <-permits
		o := limit.Outcome{Result: limit.Accepted}
		if i < 2 {
			o = limit.Outcome{Result: limit.Limited, RetryAfter: time.Minute}
		}
		p.Settle(o)
	}
	same()
	if s := g.Snapshot(); s.Limited != 2 || s.Accepted != 18 || s.Waiting != 30 {
		t.Errorf("the Gate says %+v", s)
	}
	if got := rows(b, "events"); len(got) != 1 || got[0][1] != "refused" || !strings.Contains(got[0][2], "the server refused a request") {
		t.Errorf("the events are %q", got)
	}
}

func number(n int) string { return text.Thousands(int64(n)) }
