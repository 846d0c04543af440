package run

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Of the lines that were read, the freshest goes first. A step of priority is worth as much as one
// Decay of age. Lines of equal value, such as those of a file without created, go in their order.
func TestDecayOfLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		b, url, _ := virtualBench(t, func(_ http.ResponseWriter, q *http.Request) {
			order = append(order, q.URL.RawQuery)
			time.Sleep(time.Second)
		})
		b.config.Concurrency, b.config.Decay = 1, 10*time.Second
		aged := func(id string, age time.Duration, priority int) string {
			at := time.Now().Add(-age).Format(time.RFC3339Nano)
			return fmt.Sprintf(`{"id":%q,"url":"%s?%s","created":%q,"priority":%d}`, id, url, id, at, priority)
		}
		got := b.run(request("first", url+"?first"), aged("stale", time.Minute, 0), request("a", url+"?a"),
			request("b", url+"?b"), aged("fresh", 5*time.Second, 0), aged("urgent", 65*time.Second, 6),
			aged("ahead", -time.Hour, -1), request("c", url+"?c"))
		if text := strings.Join(order, " "); got.err != nil || text != "first a b c fresh urgent ahead stale" {
			t.Errorf("%s, %v", text, got.err)
		}
	})
}

// What falls with age is refused where nothing has an age.
func TestDecayRefused(t *testing.T) {
	for _, c := range []Config{{Decay: -1}, {Decay: 1, Every: time.Second}} {
		want := "a value that falls with age"
		if c.Decay < 0 {
			want = "a negative number"
		}
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", c.Decay, err, want)
		}
	}
}
