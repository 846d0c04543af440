package permit

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Keyed guards the calls on a port of the loopback interface. A call has the key as its bearer token.
// A foreign Host and any Origin are refused: pages in a browser reach ports of their machine, too.
func Keyed(h http.Handler, key string) http.Handler {
	want := sha256.Sum256([]byte(key))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		got := sha256.Sum256([]byte(token))
		switch {
		case r.Header["Origin"] != nil || r.URL.Host != "" || !isLoopback(r.Host):
			refuse(http.StatusForbidden, "no-browser", "the Host %.80q or an Origin is not of a program on this machine, "+
				"expected 127.0.0.1 and no Origin", r.Host).write(w)
		case subtle.ConstantTimeCompare(got[:], want[:]) != 1:
			w.Header().Set("WWW-Authenticate", `Bearer realm="paceline"`)
			refuse(http.StatusUnauthorized, "no-key", "expected Authorization: Bearer and the key of --key-env").write(w)
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// isLoopback reports whether a Host names this machine.
func isLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	at, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && at.IsLoopback()
}
