package proxybench

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"time"
)

const (
	plainPath  = "/plain"
	streamPath = "/stream"

	streamEvents = 5
	between      = 10 * time.Millisecond // events of a stream
)

// newUpstream starts the server that all proxies are before.
func newUpstream() *httptest.Server {
	mux := http.NewServeMux()
	body := []byte("all the same, whichever way it comes here\n")
	mux.HandleFunc(plainPath, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })
	mux.HandleFunc(streamPath, stream)
	return httptest.NewServer(mux)
}

// stream sends events that say when they were sent.
func stream(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	c := http.NewResponseController(w)
	for i := range streamEvents {
		if i > 0 {
			time.Sleep(between)
		}
		fmt.Fprintf(w, "data: %d\n\n", time.Now().UnixNano())
		_ = c.Flush()
	}
}

// serve runs the program to compare with: a ReverseProxy in front of a URL, set up as its documentation
// shows except that it keeps more connections.
func serve(address, to string) error {
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
