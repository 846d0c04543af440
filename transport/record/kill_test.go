package record_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/transport"
	"github.com/paceline-go/paceline/transport/record"
)

// TestMain is also the process that is killed: it sends as quickly as 10 in a second allow.
func TestMain(m *testing.M) {
	url := os.Getenv("PACELINE_RECORD_URL")
	if url == "" {
		os.Exit(m.Run())
	}
	config := transport.Config{Limiter: limit.MustRolling(10, time.Second), Attempts: 1}
	if path := os.Getenv("PACELINE_RECORD_FILE"); path != "" {
		sent, err := record.Open(path)
		if err != nil {
			panic(err)
		}
		config.Recorder = sent
	}
	client := &http.Client{Transport: transport.Must(config)}
	for { // one after the other, so that one at most is in flight at the kill
		if resp, err := client.Get(url); err == nil {
			resp.Body.Close()
		}
	}
}

// A process is killed as soon as it has sent all of a window, with a request in flight, and the next one begins at
// once. A strict server, which bans after the first request too many, refuses nothing. Without a record it does.
func TestKill(t *testing.T) {
	for _, recorded := range []bool{true, false} {
		t.Run(map[bool]string{true: "recorded", false: "without"}[recorded], func(t *testing.T) {
			t.Parallel()
			judge, err := rule.NewRolling(rule.RollingConfig{Limit: 10, Window: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			began, served, banned := time.Now(), 0, false
			came := make(chan int, 1000)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				banned = banned || !judge.Arrive(mono.Of(began, time.Now()), 1)
				if served++; banned {
					w.WriteHeader(http.StatusForbidden)
				}
				last := served
				mu.Unlock()
				came <- last
				if last%10 == 0 { // it is in flight when its process is killed
					<-r.Context().Done()
				}
			}))
			defer server.Close()
			path := ""
			if recorded {
				path = filepath.Join(t.TempDir(), "sent")
			}
			for _, until := range []int{10, 15} {
				c := exec.Command(os.Args[0])
				c.Env = append(os.Environ(), "PACELINE_RECORD_FILE="+path, "PACELINE_RECORD_URL="+server.URL)
				c.Stderr = os.Stderr
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				late := time.After(30 * time.Second)
				for n := 0; n < until; {
					select {
					case n = <-came:
					case <-late:
						t.Errorf("%d arrived, want %d", n, until)
						n = until
					}
				}
				c.Process.Kill()
				c.Wait()
			}
			if mu.Lock(); banned == recorded {
				t.Errorf("banned: %v, after %d in %v", banned, served, time.Since(began))
			}
			mu.Unlock()
		})
	}
}
