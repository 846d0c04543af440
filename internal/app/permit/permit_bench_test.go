package permit

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What the daemon spends on a call for a batch that settles the batch before, by its size.
func BenchmarkAcquire(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, err := New(Config{Limits: limitsOf(b, "fast=100000000/s"), Late: 1, SendWithin: 1, TTL: 10e9})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			calls := http.NewServeMux()
			s.Mount(calls.Handle)
			k := &connection{line: 1}
			settle := ""
			call := func() {
				r := httptest.NewRequestWithContext(context.WithValue(b.Context(), connectionKey{}, k), http.MethodPost, "/v1/acquire",
					strings.NewReader(fmt.Sprintf(`{"limit": "fast", "client": "", "n": %d%s}`, n, settle)))
				w := httptest.NewRecorder()
				calls.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					b.Fatal(w.Body)
				}
				ids, _, _ := bytes.Cut(w.Body.Bytes()[len(`{"permits":[`):], []byte("]"))
				settle = fmt.Sprintf(`,"settle":[{"ids":[%s],"result":"accepted"}]`, ids)
			}
			call() // after what an earlier process may have granted
			for b.Loop() {
				call()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/permit")
		})
	}
}
