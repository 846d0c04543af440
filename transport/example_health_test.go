package transport_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/observe/prom"
	"github.com/paceline-go/paceline/transport"
)

// unready says why a service cannot use its partner now; empty: it can. Requests that wait for a limit are no reason,
// unless they have waited for longer than any caller does.
func unready(s observe.Snapshot) string {
	for _, p := range s.Paused {
		if p.Down {
			return p.Host + " is down: " + p.Why
		}
	}
	if s.LongestWait > time.Minute {
		return fmt.Sprintf("a request has waited for %v", s.LongestWait)
	}
	why := ""
	for _, k := range s.Keys {
		if k.State == observe.KeyOK || k.State == observe.KeyPaused { // a pause is over by itself
			return ""
		}
		why = k.State + ": " + k.Why
	}
	return why
}

// A service tells its platform whether it lives, and whether it can do its work, and has metrics. Restarts do not mend
// what a partner does, so /livez does not depend on it.
func ExampleTransport_Snapshot() {
	partner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "this account is closed", http.StatusUnauthorized)
	}))
	defer partner.Close()
	apply := func(r *http.Request) { r.Header.Set("Authorization", "Bearer s3cret") }
	paced := transport.Must(transport.Config{Keys: []transport.Key{{Name: "first", Apply: apply}}})

	var service http.ServeMux
	service.HandleFunc("/livez", func(http.ResponseWriter, *http.Request) {})
	service.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if why := unready(paced.Snapshot()); why != "" {
			http.Error(w, why, http.StatusServiceUnavailable)
		}
	})
	service.Handle("/metrics", prom.Handler(paced))

	ask := func(path string) string {
		w := httptest.NewRecorder()
		service.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return strings.TrimSpace(fmt.Sprint(w.Code, " ", w.Body)) + "\n"
	}
	fmt.Print(ask("/readyz"))
	client := &http.Client{Transport: paced}
	for range 3 {
		resp, err := client.Get(partner.URL)
		if err != nil {
			fmt.Println(err)
			return
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	fmt.Print(ask("/livez"))
	fmt.Print(strings.ReplaceAll(ask("/readyz"), strings.TrimPrefix(partner.URL, "http://"), "partner"))
	for line := range strings.Lines(ask("/metrics")) {
		if strings.HasPrefix(line, `paceline_key_state{`) && strings.Contains(line, "denied") {
			fmt.Print(line)
		}
	}
	client.CloseIdleConnections()
	// Output:
	// 200
	// 200
	// 503 denied: partner denies requests with every key: 401 Unauthorized: this account is closed
	// paceline_key_state{host="",key="first",source="",state="denied"} 1
}
