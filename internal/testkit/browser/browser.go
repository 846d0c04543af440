// Package browser drives a headless Chromium from a test: it speaks the DevTools protocol over two
// pipes, which needs neither a port nor a library. The browser reaches no address but this
// machine's.
package browser

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// Slow is how long anything may take before the test fails: a busy machine with a cold cache needs
// a while to start a browser.
const Slow = 2 * time.Minute

// Page is one page of a browser. Its methods end the test if the browser fails; they are for one
// goroutine, but Complaints.
type Page struct {
	t       testing.TB
	browser *process
	session string
}

// Open starts a browser with an empty page of that many CSS pixels. The test is skipped where there
// is no Chromium, as need.Program has it. It ends with the test.
func Open(t testing.TB, wide, high int) *Page {
	t.Helper()
	program := need.Program(t, "chromium")
	// Not t.TempDir: a child of the browser may still write there when the browser has ended.
	home, err := os.MkdirTemp("", "browser")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	b, err := start(program, home)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.stop)
	var target struct{ TargetID string }
	(&Page{t: t, browser: b}).must("Target.createTarget", params{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	(&Page{t: t, browser: b}).must("Target.attachToTarget", params{"targetId": target.TargetID, "flatten": true},
		&attached)
	p := &Page{t: t, browser: b, session: attached.SessionID}
	for _, domain := range []string{"Page", "Runtime", "Log", "Network", "Accessibility"} {
		p.must(domain+".enable", nil, nil)
	}
	p.Size(wide, high)
	return p
}

// Size makes the page that large.
func (p *Page) Size(wide, high int) {
	p.t.Helper()
	p.must("Emulation.setDeviceMetricsOverride",
		params{"width": wide, "height": high, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// Scheme makes the page prefer "light" or "dark".
func (p *Page) Scheme(name string) {
	p.t.Helper()
	p.must("Emulation.setEmulatedMedia", params{"features": []params{{"name": "prefers-color-scheme", "value": name}}},
		nil)
}

// Go opens a URL.
func (p *Page) Go(url string) {
	p.t.Helper()
	var went struct{ ErrorText string }
	p.must("Page.navigate", params{"url": url}, &went)
	if went.ErrorText != "" {
		p.t.Fatalf("browser: %s: %s", url, went.ErrorText)
	}
}

// Reload opens the URL again.
func (p *Page) Reload() {
	p.t.Helper()
	p.Eval("window.before = true", nil)
	p.must("Page.reload", nil, nil)
	p.Until("!window.before && document.readyState === 'complete'")
}

// Eval evaluates an expression in the page, waiting if it is a promise, and stores its value, as JSON has it, in to.
func (p *Page) Eval(expression string, to any) {
	p.t.Helper()
	if err := p.eval(expression, to); err != nil {
		p.t.Fatal(err)
	}
}

func (p *Page) eval(expression string, to any) error {
	var said struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	if err := p.call("Runtime.evaluate", params{"expression": expression, "returnByValue": true, "awaitPromise": true},
		&said); err != nil {
		return err
	}
	if e := said.ExceptionDetails; e != nil {
		return fmt.Errorf("browser: %s: %s %s", expression, e.Text, e.Exception.Description)
	}
	if to == nil {
		return nil
	}
	if said.Result.Value == nil {
		return fmt.Errorf("browser: %s has no value", expression)
	}
	return json.Unmarshal(said.Result.Value, to)
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
	codes := map[string]int{"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "End": 35, "Home": 36, "ArrowLeft": 37,
		"ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
	down := params{"type": "rawKeyDown", "key": key, "windowsVirtualKeyCode": codes[key]}
	if text := map[string]string{"Enter": "\r", " ": " "}[key]; text != "" {
		down["type"], down["text"] = "keyDown", text
	}
	p.must("Input.dispatchKeyEvent", down, nil)
	p.must("Input.dispatchKeyEvent", params{"type": "keyUp", "key": key, "windowsVirtualKeyCode": codes[key]}, nil)
}

// Screenshot writes the page, all of it and not only what is in sight, as a PNG.
func (p *Page) Screenshot(file string) {
	p.t.Helper()
	var shot struct{ Data string }
	p.must("Page.captureScreenshot", params{"format": "png", "captureBeyondViewport": true}, &shot)
	data, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(file, data, 0o644)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// Node is what a screen reader finds.
type Node struct{ Role, Name string }

// Accessible returns all that a screen reader finds, in its order.
func (p *Page) Accessible() (all []Node) {
	p.t.Helper()
	type value struct{ Value any }
	var tree struct {
		Nodes []struct {
			Ignored    bool
			Role, Name value
		}
	}
	p.must("Accessibility.getFullAXTree", nil, &tree)
	for _, n := range tree.Nodes {
		if !n.Ignored {
			role, _ := n.Role.Value.(string)
			name, _ := n.Name.Value.(string)
			all = append(all, Node{role, name})
		}
	}
	return all
}

// Complaints returns what the page has said on its console and what the browser has had to say of
// it so far: errors, warnings, exceptions, violations of policies.
func (p *Page) Complaints() []string {
	p.browser.mu.Lock()
	defer p.browser.mu.Unlock()
	return append([]string(nil), p.browser.complaints...)
}

// Forgive forgets the complaints so far.
func (p *Page) Forgive() {
	p.browser.mu.Lock()
	defer p.browser.mu.Unlock()
	p.browser.complaints = nil
}

// Asked returns the URLs that the page has asked for so far, in order.
func (p *Page) Asked() []string {
	p.browser.mu.Lock()
	defer p.browser.mu.Unlock()
	return append([]string(nil), p.browser.asked...)
}

type params map[string]any

func (p *Page) must(method string, with params, to any) {
	p.t.Helper()
	if err := p.call(method, with, to); err != nil {
		p.t.Fatal(err)
	}
}

func (p *Page) call(method string, with params, to any) error {
	return p.browser.call(p.session, method, with, to)
}

// process is a browser that runs.
type process struct {
	command  *exec.Cmd
	in       *os.File // what we say
	finished chan struct{}

	mu         sync.Mutex
	last       int
	waits      map[int]chan message
	complaints []string
	asked      []string
}

type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

func start(program, home string) (*process, error) {
	theirs, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c := exec.Command(program,
		"--headless", "--no-sandbox", // which root has none of, nor a container
		"--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
		"--user-data-dir="+filepath.Join(home, "profile"), "--remote-debugging-pipe")
	c.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home)
	c.ExtraFiles = []*os.File{theirs, theirOut} // 3 and 4, as the protocol has it
	c.WaitDelay = 5 * time.Second
	if err := c.Start(); err != nil {
		return nil, err
	}
	_, _ = theirs.Close(), theirOut.Close()
	b := &process{command: c, in: in, finished: make(chan struct{}), waits: map[int]chan message{}}
	go b.read(out)
	return b, nil
}

// stop ends the browser, and waits until it is gone.
func (b *process) stop() {
	_ = b.call("", "Browser.close", nil, nil)
	_ = b.in.Close()
	ended := time.AfterFunc(10*time.Second, func() { _ = b.command.Process.Kill() })
	_ = b.command.Wait()
	ended.Stop()
	<-b.finished
}

func (b *process) call(session, method string, with params, to any) error {
	if with == nil {
		with = params{}
	}
	answer := make(chan message, 1)
	b.mu.Lock()
	b.last++
	id := b.last
	b.waits[id] = answer
	b.mu.Unlock()
	said, err := json.Marshal(struct {
		ID      int    `json:"id"`
		Method  string `json:"method"`
		Params  params `json:"params"`
		Session string `json:"sessionId,omitempty"`
	}{id, method, with, session})
	if err != nil {
		return err
	}
	if _, err := b.in.Write(append(said, 0)); err != nil {
		return fmt.Errorf("browser: %s: %w", method, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), Slow)
	defer cancel()
	select {
	case m := <-answer:
		if m.Error != nil {
			return fmt.Errorf("browser: %s: %s", method, m.Error.Message)
		}
		if to == nil {
			return nil
		}
		return json.Unmarshal(m.Result, to)
	case <-b.finished:
		return fmt.Errorf("browser: %s: it has ended", method)
	case <-ctx.Done():
		return fmt.Errorf("browser: %s: no answer for %v", method, Slow)
	}
}

func (b *process) read(out *os.File) {
	defer close(b.finished)
	defer out.Close()
	for r := bufio.NewReader(out); ; {
		line, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(line[:len(line)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if answer := b.waits[m.ID]; answer != nil {
			delete(b.waits, m.ID)
			answer <- m
		} else {
			b.noteLocked(m)
		}
		b.mu.Unlock()
	}
}

// noteLocked keeps what an event says against the page, and what the page asks for.
func (b *process) noteLocked(m message) {
	var e struct {
		Type  string
		Args  []struct{ Value, Description any }
		Entry struct{ Source, Level, Text, URL string }

		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
		Request struct{ URL string }
	}
	if json.Unmarshal(m.Params, &e) != nil {
		return
	}
	switch m.Method {
	case "Runtime.consoleAPICalled":
		b.complaints = append(b.complaints, fmt.Sprintf("console.%s: %v", e.Type, e.Args))
	case "Runtime.exceptionThrown":
		b.complaints = append(b.complaints, e.ExceptionDetails.Text+" "+e.ExceptionDetails.Exception.Description)
	case "Log.entryAdded":
		b.complaints = append(b.complaints,
			fmt.Sprintf("%s: %s: %s %s", e.Entry.Source, e.Entry.Level, e.Entry.Text, e.Entry.URL))
	case "Network.requestWillBeSent":
		b.asked = append(b.asked, e.Request.URL)
	}
}
