package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/observe"
)

// Config describes a Page. The zero Config has nothing to show.
type Config struct {
	// Sources are shown, each under the name of its Snapshots; see observe.NameSource.
	Sources []observe.Source
	// Live, if not nil, replaces Sources. It returns the sources for each frame, if they come and
	// go. The names of their Snapshots distinguish them.
	Live func() []observe.Source
	// Beside, if not nil, returns lines of text that the page shows above its sources, about what no
	// source knows. At most 100 are shown. It is called once a second at most, and must be quick.
	Beside func() []string
	// Title is the title of the page. If empty, "Paceline".
	Title string
	// Hosts are the names that the page answers to besides localhost and addresses, without ports:
	// "metrics.example.com".
	Hosts []string
	// Forms, if not nil, reports whether the sender of a request can use forms that change the program, at
	// "knobs" beside the page. The page then links to them.
	Forms func(r *http.Request) bool
}

// Page is the page, as an http.Handler. Its methods are safe for concurrent use.
type Page struct {
	config Config
	hosts  map[string]bool

	closing   sync.Once
	closed    chan struct{}
	viewers   chan struct{} // holds one for each viewer
	mu        sync.Mutex
	looked    time.Time // when the latest frame was made
	frame     *frame    // nil: none yet
	snapshots []observe.Snapshot
	histories []*history          // of snapshots
	known     map[string]*history // those of the latest frame
}

const (
	// every is the time between frames.
	every = time.Second
	// mostViewers is the most viewers at the same time.
	mostViewers = 100
)

// Handler returns a Page for those sources that answers to localhost and to addresses. It panics if
// one of them is nil.
func Handler(sources ...observe.Source) http.Handler {
	p, err := New(Config{Sources: sources})
	if err != nil {
		panic(err)
	}
	return p
}

// New checks the configuration and returns a Page.
func New(c Config) (*Page, error) {
	p := &Page{config: c, hosts: map[string]bool{}, closed: make(chan struct{}), viewers: make(chan struct{}, mostViewers)}
	for i, s := range c.Sources {
		if s == nil {
			return nil, fmt.Errorf("page: source %d is nil", i)
		}
	}
	if c.Live != nil && len(c.Sources) > 0 {
		return nil, errors.New("page: Sources and Live are set; expected one of the two")
	}
	for _, h := range c.Hosts {
		if h == "" || strings.ContainsAny(h, "/:*@ ") {
			return nil, fmt.Errorf("page: Hosts: %q is not a name alone, such as metrics.example.com", h)
		}
		p.hosts[strings.ToLower(strings.TrimSuffix(h, "."))] = true
	}
	if c.Title == "" {
		p.config.Title = "Paceline"
	}
	p.config.Sources = append([]observe.Source(nil), c.Sources...)
	p.follow(make([]observe.Snapshot, len(c.Sources)))
	return p, nil
}

// Record keeps the history without a viewer, until ctx ends or the Page is closed. The first viewer
// then sees the past.
func (p *Page) Record(ctx context.Context) {
	for {
		_, next := p.look()
		if p.sleep(ctx, next) != nil {
			return
		}
	}
}

// Close ends the viewers' streams, so that an http.Server can shut down: pass it to the server's
// RegisterOnShutdown. It may be called again.
func (p *Page) Close() { p.closing.Do(func() { close(p.closed) }) }

var errClosed = errors.New("page: closed")

// sleep waits until an instant.
func (p *Page) sleep(ctx context.Context, until time.Time) error {
	t := time.NewTimer(time.Until(until))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.closed:
		return errClosed
	}
}

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy",
		"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
			"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types "+
			"'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "the page is read-only: GET and HEAD, not %q", r.Method)
		return
	}
	if name := hostOf(r.Host); !p.answersTo(name) {
		refuse(w, http.StatusForbidden,
			"the page answers to localhost, to addresses, and to the names in dashboard.Config.Hosts, not to %q", name)
		return
	}
	switch name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]; name {
	case "events":
		p.serveEvents(w, r)
	case "snapshot.json":
		f, _ := p.look()
		serveJSON(w, r, f.data)
	case "all.json":
		p.serveAll(w, r)
	default:
		serveAsset(w, r, name)
	}
}

// hostOf returns the name or the address in a request, without its port. A malformed port stays, so
// that the name matches none.
func hostOf(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.Trim(host[i+1:], "0123456789") == "" {
		host = host[:i]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// answersTo reports whether a stranger's page cannot have that name. An address has no name server
// that could change it.
func (p *Page) answersTo(name string) bool {
	if p.hosts[name] || name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	if inside, ok := strings.CutPrefix(name, "["); ok {
		name, ok = strings.CutSuffix(inside, "]")
		if !ok {
			return false
		}
	}
	_, err := netip.ParseAddr(name)
	return err == nil
}

func refuse(w http.ResponseWriter, status int, format string, args ...any) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	fmt.Fprintf(w, format+"\n", args...)
}

func serveJSON(w http.ResponseWriter, r *http.Request, data []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodHead {
		_, _ = w.Write(append(data, '\n'))
	}
}
