//go:build unix

package keeper

import (
	"crypto/subtle"
	"encoding/base64"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/paceline-go/paceline/internal/app/forward"
)

// portsOf are the ports of a server. Without one, a program may come by http or by https.
func portsOf(u *url.URL) []string {
	if p := u.Port(); p != "" && p != standardPorts[u.Scheme] {
		return []string{p}
	}
	return []string{"443", "80"}
}

func hasToken(r *http.Request, token string) bool {
	_, sent, _ := strings.Cut(r.Header.Get("Proxy-Authorization"), " ")
	b, _ := base64.StdEncoding.DecodeString(sent)
	_, password, _ := strings.Cut(string(b), ":")
	return subtle.ConstantTimeCompare([]byte(password), []byte(token)) == 1
}

// ownJava admits Java, which sends no password to a proxy, if it is of this user. Its HttpClient names
// nobody in CONNECT.
func ownJava(r *http.Request) bool {
	if agent := r.UserAgent(); agent != "" && !strings.HasPrefix(agent, "Java") {
		return false
	}
	here, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	uid, ok := forward.UserAt(here, r.RemoteAddr)
	return ok && uid == os.Getuid()
}
