package format

import (
	"maps"
	"net/http"
	"testing"

	"github.com/paceline-go/paceline/internal/secret"
)

// Results keep some header fields in any case, those that the user names, or all. Others are left out, and
// secrets in them are hidden and counted.
func TestKeptHeaders(t *testing.T) {
	h := http.Header{"Retry-After": {"7"}, "X-Ratelimit-Left": {"1", "2"}, "X-Own": {"of 9aK7q0Xw5Tz3Lm8Rv1"}, "Server": {"nginx"}}
	find := secret.New([]secret.Key{{Name: "A", Value: "9aK7q0Xw5Tz3Lm8Rv1"}})
	for _, c := range []struct {
		more   []string
		want   map[string]string
		hidden int
	}{
		{nil, map[string]string{"retry-after": "7", "x-ratelimit-left": "1, 2"}, 0},
		{[]string{"server"}, map[string]string{"retry-after": "7", "x-ratelimit-left": "1, 2", "server": "nginx"}, 0},
		{[]string{"*"}, map[string]string{"retry-after": "7", "x-ratelimit-left": "1, 2", "server": "nginx", "x-own": "of [A]"}, 1},
	} {
		kept := &Kept{More: c.more}
		for range 2 { // the second time it knows the names
			var r Result
			if r.SetHeaders(h, kept, find); !maps.Equal(r.Headers, c.want) || r.Hidden != c.hidden {
				t.Errorf("with %v: %q with %d hidden, want %q with %d", c.more, r.Headers, r.Hidden, c.want, c.hidden)
			}
		}
	}
	var none Result
	if none.SetHeaders(http.Header{"Server": {"nginx"}}, &Kept{}, find); none.Headers != nil {
		t.Errorf("nothing is kept, and yet %q", none.Headers)
	}
}
