package proxybench

import (
	"net/http"
	"net/http/httputil"
	"net/url"
)

// Serve runs a program to compare with. If a URL is given, that is a ReverseProxy in front of it,
// set up as its documentation shows except that it keeps more connections. Without a URL it is a
// server that never answers.
func Serve(address, to string) error {
	if to == "" {
		return http.ListenAndServe(address,
			http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
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
