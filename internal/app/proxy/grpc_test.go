package proxy

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// h2cOf is a client that speaks HTTP/2 without TLS.
func h2cOf(t testing.TB) *http.Client {
	tr := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true}
	tr.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: time.Minute}
}

// gRPC goes both ways at a time, with its trailers, over HTTP/2 with and without TLS; a refusal is a status of gRPC.
func TestGRPC(t *testing.T) {
	h := func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 || r.Header.Get("Te") != "trailers" {
			t.Errorf("%s, TE %q", r.Proto, r.Header.Get("Te"))
		}
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status, Grpc-Message")
		http.NewResponseController(w).Flush()
		b := make([]byte, 100)
		for {
			n, err := r.Body.Read(b)
			if n > 0 {
				fmt.Fprintf(w, "%s!", b[:n])
				http.NewResponseController(w).Flush()
			}
			if err != nil {
				break
			}
		}
		w.Header().Set("Grpc-Status", "0")
		w.Header().Set("Grpc-Message", "fine")
	}
	secure := httptest.NewUnstartedServer(http.HandlerFunc(h))
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	for _, encrypted := range []bool{false, true} {
		conf := to(upstreamOf(t, h), "1/h")
		conf.Upstreams[0].H2C = true
		if encrypted {
			conf = to(mustURL(t, secure.URL), "1/h")
			conf.Upstreams[0].TLS = &tls.Config{RootCAs: secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
		}
		conf.MaxWait = 2 * time.Minute
		x := start(t, conf)
		in, out := io.Pipe()
		r, _ := http.NewRequest("POST", x.url+"/pkg.Service/Method", in)
		r.Header.Set("Content-Type", "application/grpc")
		r.Header.Set("Te", "trailers")
		resp, err := h2cOf(t).Do(r) // the header comes before the body
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"one", "two", "three"} {
			io.WriteString(out, word)
			b := make([]byte, len(word)+1)
			if _, err := io.ReadFull(resp.Body, b); err != nil || string(b) != word+"!" {
				t.Fatalf("%q %v", b, err)
			}
		}
		out.Close()
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.ProtoMajor != 2 || resp.Trailer.Get("Grpc-Status") != "0" || resp.Trailer.Get("Grpc-Message") != "fine" {
			t.Errorf("%s %v", resp.Proto, resp.Trailer)
		}

		r, _ = http.NewRequest("POST", x.url+"/pkg.Service/Method", strings.NewReader("x"))
		r.Header.Set("Content-Type", "application/grpc+proto")
		r.Header.Set("Te", "trailers")
		r.Header.Set("Grpc-Timeout", "30S")
		if resp, err = h2cOf(t).Do(r); err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		g := resp.Header
		if resp.StatusCode != 200 || len(b) > 0 || g.Get("Grpc-Status") != "8" || g.Get("Content-Type") != "application/grpc+proto" || !strings.Contains(g.Get("Grpc-Message"), "1/h") || g.Get("Grpc-Retry-Pushback-Ms") == "" || g.Get("X-Should-Retry") != "false" {
			t.Errorf("%d %v %q", resp.StatusCode, g, b)
		}
	}
}

// A message is plain ASCII, whatever is in it.
func TestGRPCMessage(t *testing.T) {
	if got := grpcMessage("100% ü\n"); got != "100%25 %C3%BC%0A" {
		t.Error(got)
	}
}

// A stream that is given up frees what it had.
func TestStreamsOfHTTP2ThatAreGivenUp(t *testing.T) {
	gone := make(chan bool, 1)
	u := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
		gone <- true
	})
	x := start(t, to(u))
	r, _ := http.NewRequest("GET", x.url, nil)
	resp, err := h2cOf(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	<-gone
	until(t, func() bool { return x.proxy.visits.count() == 0 })
}
