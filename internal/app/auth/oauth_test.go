package auth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

const clientSecret = "c1i3nt-s3cr3t-q9w8"

func TestClient(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { t.Errorf("it came here: %v", q.URL) }))
	defer elsewhere.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		id, secret, ok := q.BasicAuth()
		if !ok {
			id, secret = q.FormValue("client_id"), q.FormValue("client_secret")
		}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case q.Method != http.MethodPost || q.FormValue("grant_type") != "client_credentials" || id != "me" || secret != clientSecret:
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":"invalid_client","error_description":"who is that?"}`)
		case q.URL.Path == "/params" && (q.FormValue("scope") != "read write" || q.FormValue("audience") != "api"):
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":"invalid_scope"}`)
		case q.URL.Path == "/away":
			http.Redirect(w, q, elsewhere.URL, http.StatusTemporaryRedirect)
		case q.URL.Path == "/early":
			w.WriteHeader(http.StatusTooEarly)
			fmt.Fprint(w, "come  back later")
		case q.URL.Path == "/moved": // 302 and 303 among those that are not followed
			http.Redirect(w, q, elsewhere.URL, http.StatusFound)
		case q.URL.Path == "/broken":
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, "<h1>Bad  gateway</h1>\n"+strings.Repeat("x", 10_000))
		case q.URL.Path == "/nothing":
			fmt.Fprint(w, `{}`)
		case q.URL.Path == "/endless":
			fmt.Fprint(w, `{"access_token":"abc","token_type":"bearer"}`)
		case q.URL.Path == "/ended":
			fmt.Fprint(w, `{"access_token":"abc","token_type":"bearer","expires_in":-5}`)
		case q.URL.Path == "/long", q.URL.Path == "/longer":
			w.WriteHeader(http.StatusBadGateway)
			most := lastWords - len("answered 502 Bad Gateway: ")
			if q.URL.Path == "/longer" {
				most++
			}
			fmt.Fprint(w, strings.Repeat("ä", most))
		default:
			fmt.Fprint(w, `{"access_token":"abc","token_type":"bearer","expires_in":600}`)
		}
	}))
	defer s.Close()
	for _, c := range []struct {
		path, secret string
		lasts        time.Duration
		wrong        string
	}{
		{"/params", clientSecret, 10 * time.Minute, ""},
		{"/endless", clientSecret, 0, ""},
		{"/ended", clientSecret, 1, ""}, // 0 would mean unknown
		{"/long", clientSecret, 0, ": " + strings.Repeat("ä", lastWords-26)},
		{"/longer", clientSecret, 0, ": " + strings.Repeat("ä", lastWords-26) + "…"},
		{"/params", "wrong", 0, "answered 401 Unauthorized: invalid_client: who is that?"},
		{"/away", clientSecret, 0, "answered 307 Temporary Redirect: redirects of the token endpoint are not followed"},
		{"/moved", clientSecret, 0, "answered 302 Found: redirects of the token endpoint are not followed"},
		{"/early", clientSecret, 0, "answered 425 Too Early: come back later"},
		{"/broken", clientSecret, 0, "answered 502 Bad Gateway: <h1>Bad gateway</h1> xxx"},
		{"/nothing", clientSecret, 0, "access_token"},
	} {
		u, _ := url.Parse(s.URL + c.path)
		k := &Client{TokenURL: u, ID: "me", SecretName: "S", Secret: c.secret, Scopes: []string{"read", "write"}, Params: url.Values{"audience": {"api"}}}
		if all := k.Secrets(); len(all) != 1 || all["S"] != c.secret {
			t.Errorf("its secrets are %v", all)
		}
		got, err := k.Issue(t.Context())
		if c.wrong == "" {
			if err != nil || got.Value != "abc" || got.Lasts != c.lasts {
				t.Errorf("%s: %+v, %v", c.path, got, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), clientSecret) || utf8.RuneCountInString(err.Error()) > lastWords+1 || strings.HasSuffix(err.Error(), "…") != strings.HasSuffix(c.wrong, "…") && c.path == "/long" {
			t.Errorf("%s: %v, want %s", c.path, err, c.wrong)
		}
	}
	s.Close()
	u, _ := url.Parse(s.URL + "/x")
	if _, err := (&Client{TokenURL: u, ID: "me", Secret: clientSecret}).Issue(t.Context()); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("nobody is there: %v", err)
	}
}

// A token endpoint whose certificate is of an authority of one's own is trusted if TLS says so, and
// otherwise is not sent the secret.
func TestClientTLS(t *testing.T) {
	asked := 0
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"abc","token_type":"bearer"}`)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that is broken off
	s.StartTLS()
	defer s.Close()
	u, _ := url.Parse(s.URL)
	k := &Client{TokenURL: u, ID: "me", Secret: clientSecret}
	if _, err := k.Issue(t.Context()); err == nil || asked != 0 {
		t.Errorf("an authority that nobody knows: %v, asked %d times", err, asked)
	}
	k.TLS = &tls.Config{RootCAs: x509.NewCertPool()}
	k.TLS.RootCAs.AddCert(s.Certificate())
	if got, err := k.Issue(t.Context()); err != nil || got.Value != "abc" || asked != 1 {
		t.Errorf("one's own authority: %+v, %v, asked %d times", got, err, asked)
	}
}

// A call waits for a silent server for the Timeout, or for 30 s by default. It waits twice, since
// the secret may have to go in the other of two forms.
func TestClientTimeout(t *testing.T) {
	usual := http.DefaultTransport
	defer func() { http.DefaultTransport = usual }()
	http.DefaultTransport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	for timeout, want := range map[time.Duration]time.Duration{0: 30 * time.Second, 7 * time.Second: 7 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			_, err := (&Client{TokenURL: &url.URL{Scheme: "http", Host: "hangs.test"}, ID: "me", Secret: clientSecret, Timeout: timeout}).Issue(t.Context())
			if err == nil || time.Since(began) != 2*want {
				t.Errorf("%v after %v, want %v", err, time.Since(began), 2*want)
			}
		})
	}
}
