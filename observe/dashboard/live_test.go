package dashboard_test

import (
	"bufio"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/observe/dashboard"
)

// Sources come and go. A viewer gets the past of the present sources before the first frame with
// others. A source that stays keeps its past, wherever it is in the list. One of the same name that
// has begun anew has none.
func TestLiveSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		of := func(name string, since time.Time) observe.Source {
			return fixed(observe.Snapshot{Name: name, Since: since, Counts: observe.Counts{Sent: 1}})
		}
		a, b := of("a", began), of("b", began)
		var now atomic.Pointer[[]observe.Source]
		are := func(sources ...observe.Source) { now.Store(&sources) }
		are(a)
		p := must(t, dashboard.Config{Live: func() []observe.Source { return *now.Load() }})
		server, client, _ := serve(p)
		defer server.Close()
		r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://localhost/debug/events", nil)
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		in := bufio.NewReader(resp.Body)
		type past struct {
			Sources []struct {
				Name    string
				History struct{ At []int64 }
			}
		}
		var known []string // as the latest past had them
		var points []int
		frames := func(n int) (pasts int) {
			for n > 0 {
				name, data := event(t, in)
				if name == "past" {
					pasts++
					known, points = nil, nil
					for _, s := range decode[past](t, data).Sources {
						known, points = append(known, s.Name), append(points, len(s.History.At))
					}
					continue
				}
				n--
				var names []string
				for _, s := range decode[frame](t, data).Sources {
					names = append(names, s.Name)
				}
				if strings.Join(names, " ") != strings.Join(known, " ") {
					t.Fatalf("a frame of %q comes after a past of %q", names, known)
				}
			}
			return pasts
		}
		if n := frames(12); n != 1 || len(known) != 1 {
			t.Errorf("told of the past %d times, of %q", n, known)
		}
		are(b, a)
		if n := frames(12); n != 1 || len(known) != 2 || points[0] != 1 || points[1] < 3 {
			t.Errorf("with another before it: told of the past %d times, of %q, with %v points", n, known, points)
		}
		are(of("b", began.Add(time.Second)), a)
		if n := frames(2); n != 1 || points[0] != 1 || points[1] < 5 {
			t.Errorf("where one began anew: told of the past %d times, of %q, with %v points", n, known, points)
		}
		are()
		if n := frames(2); n != 1 || len(known) != 0 {
			t.Errorf("without any: told of the past %d times, of %q", n, known)
		}
	})
}
