package daemon

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// browser posts forms to the knobs of a page, with its cookies.
type browser struct {
	t       *testing.T
	forms   *PageForms
	from    string
	host    string
	secure  bool
	origin  string // empty: none
	site    string
	cookies []*http.Cookie
}

func (b *browser) send(method, path string, form url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	r.Host, r.RemoteAddr = b.host, b.from
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range map[string]string{"Origin": b.origin, "Sec-Fetch-Site": b.site} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	if b.secure {
		r.TLS = &tls.ConnectionState{}
	}
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	b.forms.ServeHTTP(w, r)
	return w
}

// One POST of a token begins a session, which changes settings from the page's own forms alone. Each change and
// each refusal is logged with where it came from.
func TestPageSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log, turned []string
		forms := &PageForms{PageSessions: &PageSessions{},
			Ask:  func(w http.ResponseWriter, failed string) { fmt.Fprint(w, "token? "+failed) },
			Show: func(w http.ResponseWriter, said string) { fmt.Fprint(w, "settings "+said) },
			Turn: func(t Turn, from string) (string, error) {
				turned = append(turned, from+" "+t.Knob+" "+t.Name+" "+t.Value)
				if t.Value == "bad" {
					return "", errors.New("a bad value")
				}
				return "done", nil
			},
			Log: func(line string) { log = append(log, line) }}
		own := browser{t: t, forms: forms, from: "127.0.0.1:5000", host: "127.0.0.1:7879", origin: "http://127.0.0.1:7879", site: "same-origin"}
		knob := url.Values{"knob": {"limit"}, "name": {"20/s"}, "value": {"10/s"}}
		says := func(what string, b browser, method, path string, form url.Values, status int, body string) *httptest.ResponseRecorder {
			t.Helper()
			w := b.send(method, path, form)
			if w.Code != status || !strings.Contains(w.Body.String(), body) {
				t.Errorf("%s: %d %q, want %d %q", what, w.Code, w.Body, status, body)
			}
			return w
		}
		says("no session", own, "GET", "/knobs", nil, 200, "token?")
		says("a change without a session", own, "POST", "/knobs", knob, 403, "token?")
		says("a wrong token", own, "POST", "/knobs", url.Values{"token": {"guess"}}, 403, "wrong, used or too old")
		token := forms.Token()
		says("a token in a URL", own, "GET", "/knobs?token="+token, nil, 400, "never in a URL")
		foreign := own
		foreign.origin, foreign.site = "http://evil.test", "cross-site"
		says("a token of another site", foreign, "POST", "/knobs", url.Values{"token": {token}}, 403, "not of this page")
		w := says("a token", own, "POST", "/knobs", url.Values{"token": {token}}, 303, "")
		if c := w.Header().Get("Set-Cookie"); !strings.Contains(c, "; HttpOnly; SameSite=Strict") || !strings.Contains(c, "; Path=/knobs;") || strings.Contains(c, token) || strings.Contains(c, "Secure") {
			t.Errorf("the cookie %q", c)
		}
		own.cookies = w.Result().Cookies()
		says("the same token again", own, "POST", "/knobs", url.Values{"token": {token}}, 403, "wrong, used or too old")
		says("a session", own, "GET", "/knobs", nil, 200, "settings")
		says("a change", own, "POST", "/knobs", knob, 200, "settings done")
		says("a bad change", own, "POST", "/knobs", url.Values{"knob": {"limit"}, "value": {"bad"}}, 422, "Not changed: a bad value")
		for what, tune := range map[string]func(b *browser){
			"another origin":           func(b *browser) { b.origin = "http://evil.test" },
			"another port":             func(b *browser) { b.origin, b.site = "http://127.0.0.1:8888", "same-site" },
			"no origin":                func(b *browser) { b.origin = "" },
			"a null origin":            func(b *browser) { b.origin = "null" },
			"another site by its name": func(b *browser) { b.site = "cross-site" },
		} {
			b := own
			tune(&b)
			says(what, b, "POST", "/knobs", knob, 403, "not of this page")
		}
		rebound := own
		rebound.host, rebound.origin = "evil.test:7879", "http://evil.test:7879"
		says("a name that leads here", rebound, "POST", "/knobs", knob, 403, `not "evil.test"`)
		far := own
		far.from = "192.0.2.7:5000"
		says("beyond loopback", far, "POST", "/knobs", knob, 403, "over TLS")
		far.secure, far.origin = true, "https://127.0.0.1:7879"
		says("beyond loopback over TLS", far, "POST", "/knobs", knob, 200, "settings done")
		if w := far.send("POST", "/knobs", url.Values{"token": {forms.Token()}}); !strings.Contains(w.Header().Get("Set-Cookie"), "; Secure") {
			t.Errorf("the cookie over TLS %q", w.Header().Get("Set-Cookie"))
		}
		if want := "127.0.0.1:5000 limit 20/s 10/s, 127.0.0.1:5000 limit  bad, 192.0.2.7:5000 limit 20/s 10/s"; strings.Join(turned, ", ") != want {
			t.Errorf("turned %q", turned)
		}
		if all := strings.Join(log, "\n"); !strings.Contains(all, "a wrong token is refused at the page, from 127.0.0.1:5000") || !strings.Contains(all, `the page "http://evil.test" of another site is refused, from 127.0.0.1:5000`) || strings.Contains(all, token) {
			t.Errorf("the log %q", log)
		}
		late := forms.Token()
		time.Sleep(tokenFor + time.Second)
		says("a late token", own, "POST", "/knobs", url.Values{"token": {late}}, 403, "too old")
		time.Sleep(sessionFor)
		says("after the session", own, "GET", "/knobs", nil, 200, "token?")
	})
}
