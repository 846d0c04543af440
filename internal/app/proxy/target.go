package proxy

import (
	"fmt"
	"net/http"
	"strings"
)

// target refuses a request for anything but a path of an upstream. The proxy is no forward proxy,
// and no path may leave the upstream's folder.
func (p *Proxy) target(r *http.Request) *refusal {
	switch {
	case r.Method == http.MethodConnect:
		return &refusal{status: http.StatusMethodNotAllowed, kind: "no-forward-proxy", title: "This is no forward proxy", pointless: true,
			detail: "CONNECT is for HTTPS_PROXY; expected this address as the base URL of the API instead", fields: [][2]string{{"Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"}}}
	case r.URL.Scheme != "" || r.URL.Host != "" || r.URL.Opaque != "":
		return &refusal{status: http.StatusMisdirectedRequest, kind: "no-forward-proxy", title: "This is no forward proxy", pointless: true,
			detail: "a whole URL is asked for, as by HTTP_PROXY; expected a path, with this address as the base URL of the API"}
	case climbs(r.URL.Path):
		return badPath("a path with . or .. in it")
	case !strings.HasPrefix(r.URL.Path, "/") && r.URL.Path != "*":
		return badPath("a path that does not begin with a slash")
	}
	return nil
}

func badPath(what string) *refusal {
	return &refusal{status: http.StatusBadRequest, kind: "bad-path", title: "The path is not taken", detail: fmt.Sprintf("%s is not passed on; expected it resolved", what), pointless: true}
}
