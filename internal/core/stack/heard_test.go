package stack_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/internal/testkit/corpus"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// FuzzHeard: one answer may have any fields, in the form of any provider. Without a Sure outcome no
// request waits more than an hour for a probe. A probe that is served ends the pause. Never does
// more go than configured.
func FuzzHeard(f *testing.F) {
	for i, name := range provider.Names() {
		for _, s := range corpus.Load(f, "../../../provider/testdata", name) {
			var b strings.Builder
			for k, vs := range s.Response.Header {
				b.WriteString(k + ": " + vs[0] + "\n")
			}
			f.Add(uint8(i), s.Response.Status, b.String(), s.Response.Body)
		}
	}
	f.Add(uint8(0), 200, "RateLimit-Reset: 1768478400\nRateLimit-Remaining: 0", []byte(nil))
	f.Add(uint8(0), 429, "Retry-After: 99999999\nX-RateLimit-Reset: 99999999", []byte(nil))
	f.Fuzz(func(t *testing.T, which uint8, status int, fields string, body []byte) {
		const most, window = 5, time.Second
		noon := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
		g, err := stack.New(stack.Config{Limiter: limit.MustRolling(most, window)})
		if err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		for line := range strings.SplitSeq(fields[:min(len(fields), 4<<10)], "\n") {
			if name, value, ok := strings.Cut(line, ": "); ok {
				h.Add(name, value)
			}
		}
		names := provider.Names()
		d, _ := provider.Lookup(names[int(which)%len(names)])
		policy := classify.Policy{Dialect: d}
		one := limit.Cost{limit.Requests: 1}
		now := mono.Time(0)
		var sent []mono.Time
		send := func(a classify.Evidence) classify.Verdict {
			for i := range sent {
				if i+most == len(sent) && now.Sub(sent[i]) < window {
					t.Fatalf("more than %d in %v", most, window)
				}
			}
			sent = append(sent, now)
			lease := limittest.Admit(g, now, one)
			now = now.Add(time.Millisecond)
			a.Now = noon.Add(now.Sub(0))
			v := policy.Of(&a)
			g.Settle(now, lease, &v.Outcome)
			_, capacity := v.Policies(func(provider.Scope) bool { return true })
			g.Contain(now, capacity, &v.Outcome)
			return v
		}
		v := send(classify.Evidence{Status: status, Header: h, Body: body})
		next := g.Ready(now, one)
		if wait := next.Sub(now); wait > time.Hour+window && !v.Sure {
			t.Fatalf("%s: %d %v: nobody goes for %v\n%+v", d.Name(), status, h, wait, v.Said)
		}
		if next == limit.Never || next == limit.AfterSettle {
			t.Fatalf("%s: %d %v: nobody ever goes", d.Name(), status, h)
		}
		now = max(now, next)
		send(classify.Evidence{Status: http.StatusOK}) // a probe that is served, and says nothing
		if wait := g.Ready(now, one).Sub(now); wait > time.Hour+window && !v.Sure {
			t.Fatalf("%s: %d %v: after a probe that was served nobody goes for %v", d.Name(), status, h, wait)
		}
		for range 3 * most {
			next := g.Ready(now, one)
			if next == limit.Never || next == limit.AfterSettle {
				t.Fatalf("%s: %d %v: nobody ever goes", d.Name(), status, h)
			}
			now = max(now, next)
			send(classify.Evidence{Status: http.StatusOK})
		}
	})
}
