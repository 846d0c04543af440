package proxybench

import (
	"net/http"
	"net/http/httputil"
	"net/url"
)

// Serve is a peer: a ReverseProxy at an address before a URL, as its documentation has it, but for the connections that it keeps; without
// a URL, a server that holds every request.
func Serve(address, to string) error {
	if to == "" {
		return http.ListenAndServe(address, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	}
	u, err := url.Parse(to)
	if err != nil {
		return err
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.Proxy, base.MaxIdleConns, base.MaxIdleConnsPerHost, base.DisableCompression = nil, 0, 4*together, true
	return http.ListenAndServe(address, &httputil.ReverseProxy{
		Transport: base,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(u) },
	})
}
