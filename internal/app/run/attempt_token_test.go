package run

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/auth"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/limit"
)

// numberedTokens gives tokens that say which they are.
type numberedTokens struct{ n int }

func (*numberedTokens) Secrets() map[string]string { return nil }
func (*numberedTokens) String() string             { return "numbered tokens" }
func (g *numberedTokens) Issue(context.Context) (auth.Token, error) {
	g.n++
	return auth.Token{Value: fmt.Sprintf("s3cret-Token-%d-8f2", g.n)}, nil
}

// The first token served. A request that is refused with it and with the next one has a fault of its own. A request that is refused
// for the first time, by a token that has not served yet, has none: it goes again with the one after that.
func TestWhoseFaultARefusedTokenIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var came []string
		b, url, _ := virtualBench(t, func(w http.ResponseWriter, q *http.Request) {
			token := q.Header.Get("Authorization")
			mu.Lock()
			came = append(came, q.URL.Query().Get("q")+" by "+token)
			mu.Unlock()
			if q.URL.Query().Get("q") == "mine" || token == "s3cret-Token-2-8f2" {
				w.WriteHeader(http.StatusUnauthorized)
			}
		})
		b.config.Limits, b.config.Concurrency = []format.Rate{{N: 1, Per: time.Second, Unit: limit.Requests, Text: "1/s"}}, 1
		var err error
		if b.config.Header, err = format.ParseHeaders([]string{"Authorization: {token}"}); err != nil {
			t.Fatal(err)
		}
		b.config.Bearer = &Bearer{Issuer: &numberedTokens{}}
		got := b.run(request("a", url+"?q=a"), request("mine", url+"?q=mine"), request("b", url+"?q=b"), request("c", url+"?q=c"))
		if want := []string{"a by s3cret-Token-1-8f2", "mine by s3cret-Token-1-8f2", "mine by s3cret-Token-2-8f2", "b by s3cret-Token-2-8f2", "b by s3cret-Token-3-8f2", "c by s3cret-Token-3-8f2"}; !slices.Equal(came, want) {
			t.Errorf("came %q, want %q", came, want)
		}
		if got.Done != 3 || got.Dead != 1 {
			t.Errorf("%+v", got.Totals)
		}
	})
}
