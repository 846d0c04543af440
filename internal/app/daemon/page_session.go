package daemon

import (
	"crypto/rand"
	"crypto/sha256"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
)

// PageSessions let a user change a program from its page. A token of Token, sent by one POST, begins a session,
// which a cookie names. Without Token nobody has one. Safe for concurrent use.
type PageSessions struct {
	mu       sync.Mutex
	tokens   map[[sha256.Size]byte]time.Time // by hash, until when
	sessions map[[sha256.Size]byte]time.Time
}

const (
	tokenFor    = 10 * time.Minute
	sessionFor  = 12 * time.Hour
	mostOfThem  = 16
	longestForm = 4 << 10
)

// Token returns a token that begins one session within ten minutes.
func (s *PageSessions) Token() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return add(&s.tokens, tokenFor)
}

// add makes a secret. If there are too many, the one that ends first goes.
func add(all *map[[sha256.Size]byte]time.Time, lasts time.Duration) string {
	if *all == nil {
		*all = map[[sha256.Size]byte]time.Time{}
	}
	for len(*all) >= mostOfThem {
		var first [sha256.Size]byte
		for h, until := range *all {
			if end, is := (*all)[first]; !is || until.Before(end) {
				first = h
			}
		}
		delete(*all, first)
	}
	text := rand.Text()
	(*all)[sha256.Sum256([]byte(text))] = time.Now().Add(lasts)
	return text
}

// begin takes a token, and returns the secret of its session.
func (s *PageSessions) begin(token string) (secret string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := sha256.Sum256([]byte(token))
	until, is := s.tokens[h]
	delete(s.tokens, h)
	if !is || time.Now().After(until) {
		return "", false
	}
	return add(&s.sessions, sessionFor), true
}

func (s *PageSessions) has(r *http.Request) bool {
	c, err := r.Cookie(cookieOf(r))
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	until, is := s.sessions[sha256.Sum256([]byte(c.Value))]
	return is && time.Now().Before(until)
}

// cookieOf has the port in its name, since cookies of all ports of a host are together.
func cookieOf(r *http.Request) string {
	_, port, _ := net.SplitHostPort(r.Host)
	return "paceline_page_" + port
}

// PageForms are what a page shows of a program, and how it is changed.
type PageForms struct {
	*PageSessions
	// Ask shows the form for the token, and Show the settings, with what the latest change did.
	Ask  func(w http.ResponseWriter, failed string)
	Show func(w http.ResponseWriter, said string)
	// Turn makes a change. from is the address of the browser.
	Turn func(t Turn, from string) (said string, err error)
	// Log gets what was refused.
	Log func(line string)
}

// ServeHTTP implements http.Handler.
func (f *PageForms) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy",
		"default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer, the Origin of a POST is null
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "text/html; charset=utf-8")
	if why := barred(r); why != "" {
		http.Error(w, why, http.StatusForbidden)
		return
	}
	switch {
	case r.URL.RawQuery != "":
		http.Error(w, "expected no query: a token is sent by the form, and never in a URL", http.StatusBadRequest)
	case r.Method == http.MethodPost:
		f.post(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD, POST")
		http.Error(w, "expected GET or POST", http.StatusMethodNotAllowed)
	case f.has(r):
		f.Show(w, "")
	default:
		f.Ask(w, "")
	}
}

// Serves reports whether the sender of r could use the forms, with a token.
func (*PageForms) Serves(r *http.Request) bool { return barred(r) == "" }

// barred says why a request changes nothing, whatever it brings. Beyond loopback a cookie needs TLS. A foreign
// site may have a name that leads here.
func barred(r *http.Request) string {
	if r.TLS != nil {
		return ""
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		return "settings are changed over TLS, or from this machine"
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(r.Host); err == nil {
		host = name
	}
	at, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if !strings.EqualFold(host, "localhost") && (err != nil || !at.Unmap().IsLoopback()) {
		return "settings are changed under localhost or a loopback address, not " + strconv.Quote(host)
	}
	return ""
}

// ownPage reports whether a POST comes from this page. A browser says so, and a form of another site cannot.
func ownPage(r *http.Request) bool {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	site := r.Header.Get("Sec-Fetch-Site")
	return r.Header.Get("Origin") == scheme+r.Host && (site == "" || site == "same-origin")
}

func (f *PageForms) post(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, longestForm)
	if !ownPage(r) {
		f.Log("a change from the page " + strconv.Quote(r.Header.Get("Origin")) + " of another site is refused, from " +
			r.RemoteAddr)
		http.Error(w, "this form is not of this page", http.StatusForbidden)
		return
	}
	if err := r.ParseForm(); err != nil {
		http.Error(w, "this is no form", http.StatusBadRequest)
		return
	}
	if token, is := r.PostForm["token"]; is {
		secret, ok := f.begin(strings.TrimSpace(strings.Join(token, "")))
		if !ok {
			f.Log("a wrong token is refused at the page, from " + r.RemoteAddr)
			w.WriteHeader(http.StatusForbidden)
			f.Ask(w, "This token is wrong, used or too old.")
			return
		}
		http.SetCookie(w, &http.Cookie{Name: cookieOf(r), Value: secret, Path: r.URL.Path, HttpOnly: true,
			Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode, MaxAge: int(sessionFor / time.Second)})
		http.Redirect(w, r, r.URL.Path, http.StatusSeeOther)
		return
	}
	if !f.has(r) {
		w.WriteHeader(http.StatusForbidden)
		f.Ask(w, "The session is over.")
		return
	}
	f.turn(w, r)
}

func (f *PageForms) turn(w http.ResponseWriter, r *http.Request) {
	t := Turn{Knob: r.PostForm.Get("knob"), Name: strings.TrimSpace(r.PostForm.Get("name")),
		Value: strings.TrimSpace(r.PostForm.Get("value"))}
	var err error
	if text := strings.TrimSpace(r.PostForm.Get("for")); text != "" {
		var d time.Duration
		if d, err = time.ParseDuration(text); err == nil {
			t.Until = time.Now().Add(d)
		}
	}
	said := ""
	if err == nil {
		said, err = f.Turn(t, r.RemoteAddr)
	}
	if err != nil {
		w.WriteHeader(http.StatusUnprocessableEntity)
		said = "Not changed: " + err.Error()
	}
	f.Show(w, said)
}
