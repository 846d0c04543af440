package run

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/charge"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
)

// The number of a charge is a bound: it is reserved until each answer, whatever the answer before stated. An
// answer that states more raises it.
func TestTheBoundOfACharge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, at := time.Now(), map[string]time.Duration{}
		b, _, _ := virtualBench(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			at[r.URL.Path[1:]] = time.Since(began).Round(time.Second)
			w.Write(body)
		})
		did, err := charge.Compile(".did")
		if err != nil {
			t.Fatal(err)
		}
		b.config.Concurrency = 1
		b.config.Limits = append(b.config.Limits, minutely(100, limit.Weight, false))
		b.config.Charges = []provider.Charge{{On: "POST *", Cost: map[provider.Unit]int64{provider.Weight: 60},
			Answer: map[provider.Unit]provider.Expression{provider.Weight: did}}}
		var lines []string
		for i, did := range []int{30, 30, 30, 90, 20, 20} {
			lines = append(lines, fmt.Sprintf(`{"url":"http://a.test/p/%d","body":{"did":%d},"method":"POST"}`, i, did))
		}
		got := b.run(lines...)
		// After two of 30, a third may cost 60. The fourth did cost 90: then each may, and one fits a minute.
		var minutes []float64
		for i := range lines {
			minutes = append(minutes, at[fmt.Sprint("p/", i)].Minutes())
		}
		if want := []float64{0, 0, 1, 1, 2, 3}; got.err != nil || !slices.Equal(minutes, want) {
			t.Errorf("sent at minutes %v, want %v; %v\n%s", minutes, want, got.err, got.notices)
		}
	})
}

// A request costs what its line says, or else its charge: of the user, or of the provider. The answer has
// the last word.
func TestChargesOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, at := time.Now(), []string{}
		b, _, _ := virtualBench(t, func(w http.ResponseWriter, r *http.Request) {
			at = append(at, fmt.Sprintf("%s %v", r.URL.Path, time.Since(began).Round(time.Second)))
			body, _ := io.ReadAll(r.Body)
			w.Write(body)
		})
		e := func(text string) map[provider.Unit]provider.Expression {
			made, err := charge.Compile(text)
			if err != nil {
				t.Fatal(err)
			}
			return map[provider.Unit]provider.Expression{provider.Weight: made}
		}
		b.config.Concurrency = 1
		b.config.Limits = append(b.config.Limits, minutely(300, limit.Weight, false))
		b.config.Charges = []provider.Charge{
			{On: "POST *", Cost: map[provider.Unit]int64{provider.Weight: 50}, Body: e(".n"), Answer: e(".did")},
		}
		got := b.run(
			`{"id":"a","url":"http://api.binance.com/api/v3/depth?limit=5000"}`,                      // 250, as Binance documents
			`{"id":"b","url":"http://api.binance.com/api/v3/time","cost":"50 weight"}`,               // 300 in all
			`{"id":"c","url":"http://api.binance.com/x","body":{"n":290,"did":10},"method":"POST"}`,  // after a minute; it did cost 10
			`{"id":"d","url":"http://api.binance.com/y","body":{"n":290,"did":290},"method":"POST"}`, // at once, therefore
			`{"id":"e","url":"http://api.binance.com/z","body":"none","method":"POST"}`,              // 50, the number of the row
			`{"id":"f","url":"http://other.test/api/v3/depth?limit=5000"}`,                           // no row: one request
		)
		want := []string{"/api/v3/depth 0s", "/api/v3/time 0s", "/x 1m0s", "/y 1m0s", "/z 2m0s", "/api/v3/depth 2m0s"}
		if got.err != nil || !slices.Equal(at, want) {
			t.Errorf("%q, want %q; %v\n%s", at, want, got.err, got.notices)
		}
		// A cost that no limit allows is found before anything is sent.
		b.config.Out += "2"
		for line, want := range map[string]string{
			`{"url":"http://api.binance.com/x","cost":"301 weight"}`: "cost 301 weight can never go: limit 300/m weight allows 300 at once",
			`{"url":"http://api.binance.com/x","cost":"5 apples"}`:   `in:1:42: cost "apples" is no unit of a cost`,
			`{"url":"http://api.binance.com/x","cost":"x"}`:          `"x" is no cost, expected whole numbers`,
		} {
			if got := b.run(line); got.err == nil || !strings.Contains(got.notices, want) {
				t.Errorf("%s: %v, %s, want %s", line, got.err, got.notices, want)
			}
		}
	})
}
