// Package browser drives a headless Chromium from a test, by chromedp. The browser reaches no address
// but this machine's.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// Slow is how long anything may take before the test fails: a busy machine with a cold cache needs
// a while to start a browser.
const Slow = 2 * time.Minute

// Page is one page of a browser. Its methods end the test if the browser fails; they are for one
// goroutine, but Complaints.
type Page struct {
	t   testing.TB
	ctx context.Context

	mu         sync.Mutex
	complaints []string
	asked      []string
}

// shared is the browser of all pages, from the first Open on, while the tests of Shared run.
var shared struct {
	sync.Mutex
	on  bool
	ctx context.Context // nil: it has not started
	end func()
}

// Shared runs the tests of a package, which have one browser: a browser takes half a second of the processors to start.
// Each page is in a window without the cookies and the store of the others. TestMain passes the result to os.Exit.
func Shared(m *testing.M) int {
	shared.on = true
	code := m.Run()
	if shared.end != nil {
		shared.end()
	}
	return code
}

// Open opens an empty page of that many CSS pixels, in a browser of its own unless Shared runs the tests. The test is
// skipped where there is no Chromium, as need.Program has it. The page ends with the test.
func Open(t testing.TB, wide, high int) *Page {
	t.Helper()
	program := need.Program(t, "chromium")
	p := &Page{t: t}
	if parent := started(t, program); shared.on {
		p.ctx, _ = chromedp.NewContext(parent, chromedp.WithNewBrowserContext())
		t.Cleanup(func() { _ = chromedp.Cancel(p.ctx) })
	} else {
		p.ctx = parent
	}
	if err := chromedp.Listen(p.ctx, p.note); err != nil {
		t.Fatal(err)
	}
	call(p, network.Enable, network.EnableParams{})
	call(p, accessibility.Enable, cdp.Empty{})
	p.Size(wide, high)
	return p
}

// started returns the context of a browser: the shared one, or one that ends with the test.
func started(t testing.TB, program string) context.Context {
	if !shared.on {
		ctx, end := start(t, program)
		t.Cleanup(end)
		return ctx
	}
	shared.Lock()
	defer shared.Unlock()
	if shared.ctx == nil {
		shared.ctx, shared.end = start(t, program)
		if _, err := chromedp.Run(shared.ctx, chromedp.Evaluate[bool]("true")); err != nil { // it is there from now on
			t.Fatal(err)
		}
	}
	return shared.ctx
}

// start makes the context of a browser, which starts at its first use.
func start(t testing.TB, program string) (context.Context, func()) {
	// Not t.TempDir: a child of the browser may still write there when the browser has ended.
	home, err := os.MkdirTemp("", "browser")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.UserDataDir(filepath.Join(home, "profile")),
		chromedp.Env("HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"))...)
	ctx, _ = chromedp.NewContext(ctx)
	return ctx, func() {
		_ = chromedp.Cancel(ctx)
		stop()
		_ = os.RemoveAll(home)
	}
}

// call sends a command of the DevTools protocol.
func call[P, R any](p *Page, command cdp.Command[P, R], with P) R {
	p.t.Helper()
	return do(p, func(ctx context.Context, t *chromedp.Target) (R, error) { return cdp.Call(ctx, t, command, with) })
}

func do[R any](p *Page, action chromedp.Action[R]) R {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, Slow)
	defer cancel()
	result, err := chromedp.Run(ctx, action)
	if err != nil {
		p.t.Fatalf("browser: %v", err)
	}
	return result
}

// Size makes the page that large.
func (p *Page) Size(wide, high int) {
	p.t.Helper()
	do(p, chromedp.EmulateViewport(int64(wide), int64(high)))
}

// Scheme makes the page prefer "light" or "dark".
func (p *Page) Scheme(name string) {
	p.t.Helper()
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
}

// Go opens a URL. It does not wait until all of it is there.
func (p *Page) Go(url string) {
	p.t.Helper()
	if went := call(p, page.Navigate, page.NavigateParams{URL: url}); went.ErrorText != "" {
		p.t.Fatalf("browser: %s: %s", url, went.ErrorText)
	}
}

// Reload opens the URL again.
func (p *Page) Reload() {
	p.t.Helper()
	p.Eval("window.before = true", nil)
	call(p, page.Reload, page.ReloadParams{})
	p.Until("!window.before && document.readyState === 'complete'")
}

// Eval evaluates an expression in the page, waiting if it is a promise, and stores its value, as JSON has it, in to.
func (p *Page) Eval(expression string, to any) {
	p.t.Helper()
	if err := p.eval(expression, to); err != nil {
		p.t.Fatalf("browser: %s: %v", expression, err)
	}
}

func (p *Page) eval(expression string, to any) error {
	ctx, cancel := context.WithTimeout(p.ctx, Slow)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[*runtime.RemoteObject](expression, chromedp.EvalAwaitPromise,
		chromedp.EvalAsValue))
	if err != nil || to == nil {
		return err
	}
	return json.Unmarshal(value.Value, to)
}

// Until waits until an expression is true; an exception is false, as the page may not be there yet.
func (p *Page) Until(expression string) {
	p.t.Helper()
	for end := time.Now().Add(Slow); ; time.Sleep(50 * time.Millisecond) {
		var ok bool
		err := p.eval("!!("+expression+")", &ok)
		if ok {
			return
		}
		if time.Now().After(end) {
			var text string
			_ = p.eval("document.body.innerText", &text)
			p.t.Fatalf("browser: %s does not come true (%v); the page has:\n%s\nand said %q", expression, err, text,
				p.Complaints())
		}
	}
}

// Press presses a key as KeyboardEvent.key calls it, "Tab", "Enter", " ".
func (p *Page) Press(key string) {
	p.t.Helper()
	keys := map[string]string{"Tab": kb.Tab, "Enter": kb.Enter, "Escape": kb.Escape, " ": " ", "End": kb.End,
		"Home": kb.Home, "ArrowLeft": kb.ArrowLeft, "ArrowRight": kb.ArrowRight}
	do(p, chromedp.KeyEvent(keys[key]))
}

// Screenshot writes the page, all of it and not only what is in sight, as a PNG.
func (p *Page) Screenshot(file string) {
	p.t.Helper()
	if err := os.WriteFile(file, do(p, chromedp.FullScreenshot(100)), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// Node is what a screen reader finds.
type Node struct{ Role, Name string }

// Accessible returns all that a screen reader finds, in its order.
func (p *Page) Accessible() (all []Node) {
	p.t.Helper()
	text := func(v *accessibility.Value) (s string) {
		if v != nil {
			_ = json.Unmarshal(v.Value, &s) // a number is no text
		}
		return s
	}
	for _, n := range call(p, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		if !n.Ignored {
			all = append(all, Node{text(n.Role), text(n.Name)})
		}
	}
	return all
}

// Complaints returns what the page has said on its console and what the browser has had to say of
// it so far: errors, warnings, exceptions, violations of policies.
func (p *Page) Complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.complaints)
}

// Forgive forgets the complaints so far.
func (p *Page) Forgive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.complaints = nil
}

// Asked returns the URLs that the page has asked for so far, in order.
func (p *Page) Asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// note keeps what an event says against the page, and what the page asks for.
func (p *Page) note(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		var said []any
		for _, a := range e.Args {
			said = append(said, string(a.Value)+a.Description)
		}
		p.complaints = append(p.complaints, fmt.Sprintf("console.%s: %v", e.Type, said))
	case *runtime.EventExceptionThrown:
		p.complaints = append(p.complaints, (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error())
	case *log.EventEntryAdded:
		p.complaints = append(p.complaints,
			fmt.Sprintf("%s: %s: %s %s", e.Entry.Source, e.Entry.Level, e.Entry.Text, e.Entry.URL))
	case *network.EventRequestWillBeSent:
		p.asked = append(p.asked, e.Request.URL)
	}
}
