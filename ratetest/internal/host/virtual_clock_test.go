package host

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type answer struct {
	status int
	text   string
}

// call asks a virtual clock.
func call(ctx context.Context, v *virtualClock, path string) answer {
	w := httptest.NewRecorder()
	v.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, ClockPath+path, nil))
	return answer{w.Code, strings.TrimSpace(w.Body.String())}
}

// calls asks it in the background, and returns when it has answered or waits.
func calls(ctx context.Context, v *virtualClock, path string) <-chan answer {
	c := make(chan answer, 1)
	go func() { c <- call(ctx, v, path) }()
	synctest.Wait()
	return c
}

// expect checks an answer that has come.
func expect(t *testing.T, c <-chan answer, status int, text string) {
	t.Helper()
	select {
	case a := <-c:
		if a.status != status || !strings.HasPrefix(a.text, text) {
			t.Errorf("%v, want %d %s", a, status, text)
		}
	default:
		t.Errorf("no answer, want %d %s", status, text)
	}
}

func waits(t *testing.T, c <-chan answer) {
	t.Helper()
	select {
	case a := <-c:
		t.Errorf("%v, want a wait", a)
	default:
	}
}

// TestVirtualClock: a sleep ends when all clients sleep, and no other ends with it. No real time
// passes.
func TestVirtualClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, ctx, start := newVirtualClock(2), t.Context(), time.Now()
		a := calls(ctx, v, "sleep?client=a&seconds=86400.1")
		waits(t, a)
		b := calls(ctx, v, "sleep?client=b&seconds=1.07")
		expect(t, b, 200, "1.07")
		waits(t, a)
		b = calls(ctx, v, "sleep?client=b&seconds=86399.03")
		expect(t, a, 200, "86400.1")
		waits(t, b)
		expect(t, calls(ctx, v, "now"), 200, "86400.1")
		expect(t, calls(ctx, v, "leave?client=a"), 200, "86400.1")
		expect(t, b, 200, "86400.1")
		expect(t, calls(ctx, v, "sleep?client=b&seconds=0.333333333333"), 200, "86400.433333334")
		if d := time.Since(start); d != 0 {
			t.Errorf("%v of real time", d)
		}
	})
}

// TestVirtualClockGone: a client whose connection breaks as it sleeps counts no more.
func TestVirtualClockGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVirtualClock(3)
		ctx, hangUp := context.WithCancel(t.Context())
		calls(ctx, v, "sleep?client=a&seconds=1")
		hangUp()
		b := calls(t.Context(), v, "sleep?client=b&seconds=2")
		waits(t, b)
		c := calls(t.Context(), v, "sleep?client=c&seconds=3")
		expect(t, b, 200, "2")
		expect(t, calls(t.Context(), v, "sleep?client=a&seconds=1"), 409, `client "a" has left`)
		// c hangs up in the instant at which its sleep ends: it is not awake for ever.
		expect(t, calls(t.Context(), v, "leave?client=b"), 200, "2")
		expect(t, c, 200, "3")
		gone, hangUp := context.WithCancel(t.Context())
		hangUp()
		calls(gone, v, "sleep?client=c&seconds=1")
		if v.sleepers.awake != nil {
			t.Errorf("%s is awake", v.sleepers.awake.name)
		}
	})
}

// TestVirtualClockStands: after a minute of real time without a call, the sleeps fail with the
// name of the client that the clock waits for.
func TestVirtualClockStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVirtualClock(2)
		a := calls(t.Context(), v, "sleep?client=a&seconds=1")
		time.Sleep(patience - 1)
		b := calls(t.Context(), v, "sleep?client=b&seconds=2")
		expect(t, a, 200, "1")
		time.Sleep(patience - 1)
		synctest.Wait()
		waits(t, b)
		time.Sleep(1 * time.Nanosecond)
		synctest.Wait()
		const why = `the virtual clock stands still for 1m0s: client "a" is awake, and neither sleeps nor leaves`
		expect(t, b, 503, why)
		expect(t, calls(t.Context(), v, "sleep?client=a&seconds=1"), 503, why)
	})
	synctest.Test(t, func(t *testing.T) {
		v := newVirtualClock(2)
		a := calls(t.Context(), v, "sleep?client=a&seconds=1")
		time.Sleep(patience)
		synctest.Wait()
		expect(t, a, 503, `the virtual clock stands still for 1m0s: 1 of 2 clients have slept: "a"`)
	})
	// Where no client waits, the clock may stand for any time.
	synctest.Test(t, func(t *testing.T) {
		v := newVirtualClock(1)
		expect(t, calls(t.Context(), v, "sleep?client=a&seconds=1"), 200, "1")
		time.Sleep(100 * patience)
		expect(t, calls(t.Context(), v, "sleep?client=a&seconds=1"), 200, "2")
	})
}

// TestVirtualClockCloses: a server that closes ends the sleeps at once.
func TestVirtualClockCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := NewClock(ClockConfig{Clients: 2})
		if err != nil {
			t.Fatal(err)
		}
		a := calls(t.Context(), c.virtual, "sleep?client=a&seconds=1")
		h, _ := New(http.NotFoundHandler(), c, func() error { return nil })
		h.Close()
		synctest.Wait()
		expect(t, a, 503, "the server is closing")
	})
}

func TestVirtualClockBadInput(t *testing.T) {
	v := newVirtualClock(1)
	for path, want := range map[string]answer{
		"sleep?client=a&seconds=-1":   {400, `seconds "-1": expected a number from 0 to 9223372036, such as 1.5`},
		"sleep?client=a&seconds=NaN":  {400, `seconds "NaN": expected a number`},
		"sleep?client=a&seconds=inf":  {400, `seconds "inf": expected a number`},
		"sleep?client=a&seconds=1e99": {400, `seconds "1e99": expected a number`},
		"sleep?client=a":              {400, `seconds "": expected a number`},
		"sleep?seconds=1":             {409, "client: the name is missing"},
		"leave?client=a":              {409, `client "a" has never slept`},
		"slumber":                     {404, "no such path: expected /clock/sleep?client=NAME&seconds=1.5"},
	} {
		if a := call(t.Context(), v, path); a.status != want.status || !strings.HasPrefix(a.text, want.text) {
			t.Errorf("%s: %v, want %v", path, a, want)
		}
	}
	for want, c := range map[string]ClockConfig{
		"Scale NaN":                         {Scale: math.NaN()},
		"VirtualClients -1":                 {Clients: -1},
		"VirtualClients 1001":               {Clients: MostClients + 1},
		"Scale 2: a virtual clock":          {Clients: 1, Scale: 2},
		"Before, After: by a virtual clock": {Clients: 1, Latency: true},
	} {
		if _, err := NewClock(c); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", c, err, want)
		}
	}
}
