package proxy

import (
	"fmt"
	"net/http"
	"strings"
)

// methods are in the field Allow of a refusal.
const methods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"

// target refuses a request for anything but a path of an upstream, or a whole URL if it came by the
// forward proxy. No path may climb out of a folder.
func (p *Proxy) target(r *http.Request, whole bool) *refusal {
	switch {
	case r.Method == http.MethodConnect:
		return &refusal{status: http.StatusMethodNotAllowed, kind: "no-forward-proxy", title: "This is no forward proxy",
			pointless: true,
			detail:    "this address is the base URL of the API; HTTPS_PROXY needs that of paceline proxy --forward",
			fields:    [][2]string{{"Allow", methods}}}
	case len(r.Method) <= len("CONNECT") && badMethods[strings.ToUpper(r.Method)] != "":
		return &refusal{status: http.StatusMethodNotAllowed, kind: "bad-method", title: "The method is not taken",
			pointless: true,
			detail:    badMethods[strings.ToUpper(r.Method)], fields: [][2]string{{"Allow", methods}}}
	case !whole && (r.URL.Scheme != "" || r.URL.Host != ""): // only a scheme makes a URL opaque
		return &refusal{status: http.StatusMisdirectedRequest, kind: "no-forward-proxy", title: "This is no forward proxy",
			pointless: true,
			detail: "a whole URL is asked for, as by HTTP_PROXY; this address is the base URL of the API, and HTTP_PROXY " +
				"needs that of paceline proxy --forward"}
	case !strings.HasPrefix(r.URL.Path, "/"): // OPTIONS * is answered by net/http
		return badPath("a path that does not begin with a slash")
	case !clearLength(r):
		return &refusal{status: http.StatusBadRequest, kind: "bad-body", title: "The length of the body is not clear",
			pointless: true,
			detail:    "expected one Content-Length of digits, which is the length of the body"}
	}
	path := r.URL.Path
	if whole { // apt asks for such paths
		path = strings.ReplaceAll(path, "/./", "/")
	}
	if what := badPathIn(path); what != "" {
		return badPath(what)
	}
	return nil
}

// badMethods are refused, in any letters: some servers know them in small ones.
var badMethods = map[string]string{
	"TRACE": "an answer to TRACE has the whole request in it, and so the keys that the proxy adds",
	"TRACK": "an answer to TRACK has the whole request in it, and so the keys that the proxy adds",
	"DEBUG": "DEBUG is for the machine of the server alone",
	"PRI":   "PRI begins a connection of HTTP/2, and is no request of one",

	http.MethodConnect: "this address is the base URL of the API; HTTPS_PROXY needs that of paceline proxy --forward",
}

// clearLength reports whether the length of a body is said once, as a number. Over HTTP/1 net/http
// makes sure of it; over HTTP/2 it goes by the borders of the stream, and passes over such a field.
// A server that gets the field from somewhere else might not.
func clearLength(r *http.Request) bool {
	all := r.Header["Content-Length"]
	switch {
	case len(all) == 0:
		return true
	case len(all) > 1 || all[0] == "" || strings.Trim(all[0], "0123456789") != "":
		return false
	}
	return r.ContentLength != 0 || strings.Trim(all[0], "0") == ""
}

func badPath(what string) *refusal {
	return &refusal{status: http.StatusBadRequest, kind: "bad-path", title: "The path is not taken",
		detail: fmt.Sprintf("%s is not passed on; expected it resolved", what), pointless: true}
}
