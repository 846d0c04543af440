package proxy

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/testkit/fakeconn"
	"github.com/paceline-go/paceline/limit"
)

// A request of paceline run waits in line for longer than its timeout, since the proxy says that it waits. If the run
// takes it back there, the run knows whether it was sent. A request that was sent counts so.
func TestARunInLine(t *testing.T) {
	const turn = 20 * time.Second // when the second request may go
	for _, c := range []struct {
		name      string
		withdraw  time.Duration // 0: never
		answers   time.Duration
		refuses   bool // the server refuses the first attempt
		finalOnly bool
		byNet     bool // a long body: net/http sends the request, as it does through another proxy or below exec
		lapsed    bool
		status    int           // 0: none
		ends      time.Duration // when the attempt has ended
	}{
		{name: "it waits for longer than its timeout", status: 200, ends: turn},
		{name: "the server is slow, too", answers: 4 * time.Second, status: 200, ends: turn + 4*time.Second},
		{name: "the server is too slow", answers: 8 * time.Second, ends: turn + 5*time.Second},
		{name: "no interim answers", finalOnly: true, ends: 5 * time.Second},
		{name: "taken back in line", withdraw: 7 * time.Second, lapsed: true, ends: 7 * time.Second},
		{name: "taken back before it is known to wait", withdraw: time.Second, lapsed: true, ends: 2 * time.Second},
		{name: "taken back right before it is sent", withdraw: turn, lapsed: true, ends: turn},
		{name: "taken back when it was sent", withdraw: turn + time.Second, answers: 3 * time.Second,
			status: 200, ends: turn + 3*time.Second},
		{name: "by net/http", byNet: true, status: 200, ends: turn},
		{name: "by net/http, taken back in line", byNet: true, withdraw: 7 * time.Second, lapsed: true, ends: 7 * time.Second},
		{name: "by net/http, taken back when it was sent", byNet: true, withdraw: turn + time.Second,
			answers: 3 * time.Second, status: 200, ends: turn + 3*time.Second},
		{name: "sent, refused, and taken back in line", refuses: true, withdraw: turn + 7*time.Second,
			ends: turn + 7*time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conf := to(mustURL(t, "http://up.test"), "1/20s")
				conf.FinalOnly = c.finalOnly
				var seen atomic.Int64
				began := time.Now()
				s, out := ofRun(t, conf, c.byNet, c.withdraw, func(w http.ResponseWriter) {
					if seen.Add(1) == 1 && c.refuses {
						w.Header().Set("Retry-After", "30")
						w.WriteHeader(http.StatusTooManyRequests)
						return
					}
					time.Sleep(c.answers)
				}, func(s *sending.Sender) {
					if n := s.InLine(); (n == 1) == (c.finalOnly || c.lapsed && c.withdraw < 2*time.Second) {
						t.Errorf("%d in line", n)
					}
				})
				took := time.Since(began)
				if out.Lapsed != c.lapsed || out.Status != c.status || took < c.ends || took > c.ends+c.ends/100 {
					t.Errorf("after %v: %+v", took, out)
				}
				if out.Lapsed && seen.Load() > 0 {
					t.Error("it was sent, and counts as not sent")
				}
				if c.status != 0 && (out.InLine < turn || out.Ended.Sub(out.Began) > c.answers+time.Second) {
					t.Errorf("%v in line, and answered in %v", out.InLine, out.Ended.Sub(out.Began))
				}
				if !c.lapsed && !out.Written {
					t.Errorf("not written: %+v", out)
				}
				if n := s.InLine(); n != 0 {
					t.Errorf("%d in line at the end", n)
				}
				time.Sleep(time.Minute) // virtual: until the server has answered
			})
		})
	}
}

// ofRun sends a request as paceline run does. It is the second at the proxy. After 3 s looks is called.
func ofRun(t *testing.T, conf Config, byNet bool, withdraw time.Duration, serve func(w http.ResponseWriter),
	looks func(s *sending.Sender)) (s *sending.Sender, out sending.Response) {
	conf.MaxWait = time.Hour
	down := fakeconn.New()
	x := virtualAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.UserAgent() != "first" {
			serve(w)
		}
	}), conf, down, down.Dial)
	x.do("GET", "/", "", "User-Agent", "first")
	s = sending.New(sending.Config{Dial: down.DialHalves, Timeout: 5 * time.Second, MaxResponse: 100,
		UserAgent: "paceline/1.0", Secrets: format.NewSecrets(nil, nil, nil, format.Plain{})})
	defer s.Close()
	r := &format.Request{ID: "r", Method: "GET", URL: mustURL(t, x.url), Cost: limit.One, Header: http.Header{}}
	if byNet {
		r.Method, r.Body = "POST", make([]byte, 10<<10)
	}
	if withdraw > 0 {
		time.AfterFunc(withdraw, s.Withdraw)
	}
	time.AfterFunc(3*time.Second, func() { looks(s) })
	s.Send(t.Context(), r, sending.FirstHop(r), &format.Values{ID: "r", Attempt: 1}, nil, &out)
	return s, out
}

// At the very instant at which the proxy sends a request, the run takes it back: it is sent or it has lapsed, and never
// both.
func TestARunTakesBackAtTheInstant(t *testing.T) {
	sent, lapsed := 0, 0
	turn := time.Duration(0)
	for range 60 {
		synctest.Test(t, func(t *testing.T) {
			var seen atomic.Int64
			_, out := ofRun(t, to(mustURL(t, "http://up.test"), "1/20s"), false, turn,
				func(http.ResponseWriter) { seen.Add(1) }, func(*sending.Sender) {})
			switch {
			case turn == 0:
				turn = out.InLine
			case out.Lapsed && seen.Load() > 0:
				t.Fatal("it was sent, and has lapsed")
			case out.Lapsed:
				lapsed++
			default:
				sent++
			}
			time.Sleep(time.Minute) // virtual: until the server has answered
		})
	}
	t.Logf("%d sent, %d lapsed", sent, lapsed)
}
