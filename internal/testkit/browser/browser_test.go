package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/browser"
)

// What a page complains of is heard, its keys arrive, and what it asks for is known.
func TestPage(t *testing.T) {
	p := browser.Open(t, 500, 400)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `<!doctype html><title>t</title><link rel=icon href=data:,><h1>hello</h1><button onclick="this.textContent='pressed'">b</button>
			<img src=/missing alt=""><script>console.error("told"); setTimeout(() => { throw new Error("thrown") })</script>`)
	}))
	defer server.Close()
	p.Scheme("dark")
	p.Go(server.URL)
	p.Until(`document.querySelector("h1").textContent === "hello"`)
	var saw struct {
		Wide int
		Dark bool
	}
	p.Eval(`({wide: innerWidth, dark: matchMedia("(prefers-color-scheme: dark)").matches})`, &saw)
	if saw.Wide != 500 || !saw.Dark {
		t.Errorf("the page is %+v", saw)
	}
	p.Press("Tab")
	p.Press("Enter")
	p.Until(`document.querySelector("button").textContent === "pressed"`)
	if all := p.Accessible(); !slices.Contains(all, browser.Node{Role: "heading", Name: "hello"}) {
		t.Errorf("a screen reader finds %v", all)
	}
	p.Until(`document.images[0].complete`)
	said := strings.Join(p.Complaints(), "\n")
	for _, want := range []string{`console.error: ["told"]`, "Error: thrown", "404"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in what the page complains of: %s", want, said)
		}
	}
	if asked := p.Asked(); !slices.Contains(asked, server.URL+"/missing") {
		t.Errorf("it asked for %q", asked)
	}
	shot := filepath.Join(t.TempDir(), "shot.png")
	p.Screenshot(shot)
	if head, err := os.ReadFile(shot); err != nil || !strings.HasPrefix(string(head), "\x89PNG") {
		t.Errorf("the picture is %.10q, %v", head, err)
	}
}
