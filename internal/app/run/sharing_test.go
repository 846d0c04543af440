package run

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

func TestSharingRefuses(t *testing.T) {
	for _, c := range []struct {
		rate    format.Rate
		sharing Sharing
		want    string
	}{
		{format.Rate{N: 8000, Per: time.Minute, Text: "8000/m output", Produced: true}, Sharing{}, "limit 8000/m output: output counts as it is produced"},
		{format.Rate{N: 20, Per: time.Second, Text: "20/s"}, Sharing{Weight: -1}, "limit 20/s: fairshare: Fair: Weight -1"},
	} {
		if _, err := New(Config{Limits: []format.Rate{c.rate}, Strangers: &c.sharing}); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// The kind of a limit comes from the limit if the user does not name it.
func TestSharingKnowsTheKind(t *testing.T) {
	hears := func(kind fairshare.Kind, counts limit.Counting) (ready []mono.Time) {
		l, err := (&Sharing{Kind: kind, Seed: 1}).limiter(format.Rate{N: 4500, Per: time.Hour, Text: "4500/h", Counts: counts})
		if err != nil {
			t.Fatal(err)
		}
		now := mono.Time(0)
		for i := range int64(40) {
			lease := limittest.Admit(l, now, limit.One)
			o := limit.Outcome{Result: limit.Accepted, Known: 1}
			o.Remaining[limit.Requests] = 4400 - 10*i
			now = now.Add(100 * time.Millisecond)
			l.Settle(now, lease, &o)
			now = l.Ready(now, limit.One)
			ready = append(ready, now)
		}
		return ready
	}
	for counts, kind := range map[limit.Counting]fairshare.Kind{limit.CountsWindow: fairshare.FixedWindow, limit.CountsRolling: fairshare.RollingWindow} {
		if got, want := hears(fairshare.UnknownKind, counts), hears(kind, 0); !slices.Equal(got, want) {
			t.Errorf("%v by its limit goes at %v, by the user's word at %v", kind, got, want)
		}
		if slices.Equal(hears(fairshare.UnknownKind, 0), hears(kind, 0)) {
			t.Errorf("%v goes as one that is not known does", kind)
		}
		if got, want := hears(fairshare.TokenBucket, counts), hears(fairshare.TokenBucket, 0); !slices.Equal(got, want) {
			t.Errorf("a bucket by the user's word, and %v by its limit, goes at %v, want %v", kind, got, want)
		}
	}
}

// A refusal with the reset of a full bucket keeps the key away neither in this run nor in the next.
// A refusal with the reset of a window does.
func TestSharingRefills(t *testing.T) {
	for kind, away := range map[fairshare.Kind]bool{fairshare.UnknownKind: false, fairshare.TokenBucket: false, fairshare.FixedWindow: true} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			b, url, _ := virtualBench(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-RateLimit-Limit", "4500")
				w.Header().Set("X-RateLimit-Remaining", "0")
				w.Header().Set("X-RateLimit-Reset", "3600")
				if n++; n == 1 {
					w.WriteHeader(http.StatusTooManyRequests)
				}
			})
			b.config.Limits, b.config.Strangers = []format.Rate{{N: 4500, Per: time.Hour, Text: "4500/h"}}, &Sharing{Kind: kind, Seed: 1}
			b.config.Concurrency, b.config.Attempts = 1, 5
			began := time.Now()
			got := b.run(request("a", url))
			journal, err := os.ReadFile(b.config.Out + ".journal")
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); got.Done != 1 || took > 20*time.Minute != away || strings.Contains(got.notices, "stay away") != away || bytes.Contains(journal, []byte(`"hold"`)) != away {
				t.Errorf("kind %v: %+v after %v\n%s%s", kind, got.Totals, took, got.notices, journal)
			}
		})
	}
}
