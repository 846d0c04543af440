package pacegrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/paceline-go/paceline"
	pacegrpc "github.com/paceline-go/paceline/contrib/grpc"
	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/pool/backoff"
)

// server answers Check by a script, and Watch with so many messages. It records the times of the
// calls.
type server struct {
	grpc_health_v1.UnimplementedHealthServer
	answer  func(ctx context.Context, n int) error // of the n-th, from 1
	each    time.Duration                          // between messages
	message int

	mu    sync.Mutex
	begin time.Time
	at    []time.Duration
}

func (s *server) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = append(s.at, time.Since(s.begin))
	return len(s.at)
}

func (s *server) times() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.at)
}

func (s *server) Check(ctx context.Context, _ *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	n := s.asked()
	if s.answer != nil {
		if err := s.answer(ctx, n); err != nil {
			return nil, err
		}
	}
	return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}, nil
}

func (s *server) Watch(_ *grpc_health_v1.HealthCheckRequest, w grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse]) error {
	n := s.asked()
	if s.answer != nil {
		if err := s.answer(w.Context(), n); err != nil {
			return err
		}
	}
	for range s.message {
		if err := w.Send(&grpc_health_v1.HealthCheckResponse{}); err != nil {
			return err
		}
		select {
		case <-time.After(s.each):
		case <-w.Context().Done():
			return w.Context().Err()
		}
	}
	return nil
}

// dial starts the server and returns a client of it.
func (s *server) dial(t testing.TB, p *pacegrpc.Pace) (grpc_health_v1.HealthClient, func()) {
	s.begin = time.Now()
	ln := bufconn.Listen(1 << 20)
	srv := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(srv, s)
	go srv.Serve(ln)
	conn, err := grpc.NewClient("passthrough:///bufnet", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return ln.DialContext(ctx) }),
		grpc.WithUnaryInterceptor(p.Unary), grpc.WithStreamInterceptor(p.Stream))
	if err != nil {
		t.Fatal(err)
	}
	return grpc_health_v1.NewHealthClient(conn), func() {
		conn.Close()
		srv.Stop()
	}
}

func pace(t testing.TB, c pacegrpc.Config) *pacegrpc.Pace {
	t.Helper()
	if c.Backoff == (backoff.Policy{}) {
		c.Backoff = backoff.Policy{Jitter: -1}
	}
	p, err := pacegrpc.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func rolling(n int64, window time.Duration) limit.Limiter {
	l, err := limit.NewRolling(limit.RollingConfig{Limit: n, Window: window, Margin: -1})
	if err != nil {
		panic(err)
	}
	return l
}

func seconds(s ...float64) (d []time.Duration) {
	for _, v := range s {
		d = append(d, time.Duration(v*float64(time.Second)))
	}
	return d
}

func info(code codes.Code, after time.Duration) error {
	s, err := status.New(code, "no").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
	if err != nil {
		panic(err)
	}
	return s.Err()
}

func trailer(ctx context.Context, err error, fields ...string) error {
	grpc.SetTrailer(ctx, metadata.Pairs(fields...))
	return err
}

// The first answer, the time of the second attempt, the end of the call, and the outcome.
func TestAnswers(t *testing.T) {
	exhausted, unavailable := status.Error(codes.ResourceExhausted, "no"), status.Error(codes.Unavailable, "no")
	for _, c := range []struct {
		name       string
		first      func(ctx context.Context) error
		idempotent bool
		sent       []float64
		code       codes.Code
		settled    observe.Stats
		next       float64 // the time of another call right after it
	}{
		{name: "served", first: func(context.Context) error { return nil }, sent: []float64{0}, settled: observe.Stats{Accepted: 1}},
		{name: "RetryInfo", first: func(context.Context) error { return info(codes.ResourceExhausted, 2500*time.Millisecond) }, sent: []float64{0, 2.5}, settled: observe.Stats{Limited: 1, Accepted: 1}, next: 2.5},
		{name: "RetryInfo of less than a millisecond", first: func(context.Context) error { return info(codes.ResourceExhausted, time.Microsecond) }, sent: []float64{0, 0.001}, settled: observe.Stats{Limited: 1, Accepted: 1}, next: 0.001},
		{name: "unavailable with RetryInfo", first: func(context.Context) error { return info(codes.Unavailable, 3*time.Second) }, sent: []float64{0, 3}, settled: observe.Stats{Limited: 1, Accepted: 1}, next: 3},
		{name: "pushback", first: func(ctx context.Context) error { return trailer(ctx, exhausted, "grpc-retry-pushback-ms", "1500") }, sent: []float64{0, 1.5}, settled: observe.Stats{Limited: 1, Accepted: 1}, next: 1.5},
		{name: "pushback goes before RetryInfo", first: func(ctx context.Context) error {
			return trailer(ctx, info(codes.ResourceExhausted, time.Hour), "grpc-retry-pushback-ms", "1500")
		}, sent: []float64{0, 1.5}, settled: observe.Stats{Limited: 1, Accepted: 1}, next: 1.5},
		{name: "pushback says no", first: func(ctx context.Context) error { return trailer(ctx, unavailable, "grpc-retry-pushback-ms", "-1") }, idempotent: true, sent: []float64{0}, code: codes.Unavailable, settled: observe.Stats{Failed: 1}},
		{name: "retry-after", first: func(ctx context.Context) error { return trailer(ctx, exhausted, "retry-after", "4") }, sent: []float64{0, 4}, settled: observe.Stats{Limited: 1, Accepted: 1}, next: 4},
		{name: "retry-after before the trailer", first: func(ctx context.Context) error {
			grpc.SetHeader(ctx, metadata.Pairs("retry-after", "4"))
			return exhausted
		}, sent: []float64{0, 4}, settled: observe.Stats{Limited: 1, Accepted: 1}, next: 4},
		{name: "ratelimit fields", first: func(ctx context.Context) error {
			return trailer(ctx, exhausted, "ratelimit-policy", `"minute";q=100;w=60`, "ratelimit", `"minute";r=0;t=20`)
		}, sent: []float64{0, 20}, settled: observe.Stats{Limited: 1, Accepted: 1}, next: 20},
		{name: "a refusal without a time: a backoff", first: func(context.Context) error { return exhausted }, sent: []float64{0, 0.1}, settled: observe.Stats{Limited: 1, Accepted: 1}, next: 0.1},
		{name: "an hour is longer than anybody waits", first: func(context.Context) error { return info(codes.ResourceExhausted, time.Hour) }, sent: []float64{0}, code: codes.ResourceExhausted, settled: observe.Stats{Limited: 1}, next: -1},
		{name: "unavailable, it may have been processed", first: func(context.Context) error { return unavailable }, sent: []float64{0}, code: codes.Unavailable, settled: observe.Stats{Failed: 1}},
		{name: "unavailable, idempotent", first: func(context.Context) error { return unavailable }, idempotent: true, sent: []float64{0, 0.1}, settled: observe.Stats{Failed: 1, Accepted: 1}},
		{name: "internal, idempotent", first: func(context.Context) error { return status.Error(codes.Internal, "no") }, idempotent: true, sent: []float64{0, 0.1}, settled: observe.Stats{Failed: 1, Accepted: 1}},
		{name: "an invalid argument, idempotent", first: func(context.Context) error { return status.Error(codes.InvalidArgument, "no") }, idempotent: true, sent: []float64{0}, code: codes.InvalidArgument, settled: observe.Stats{Failed: 1}},
		{name: "unimplemented, idempotent", first: func(context.Context) error { return status.Error(codes.Unimplemented, "no") }, idempotent: true, sent: []float64{0}, code: codes.Unimplemented, settled: observe.Stats{Failed: 1}},
		{name: "a message too large is no limit of calls", first: func(context.Context) error {
			return status.Error(codes.ResourceExhausted, "grpc: received message larger than max (5 vs. 4)")
		}, sent: []float64{0}, code: codes.ResourceExhausted, settled: observe.Stats{Failed: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := pace(t, pacegrpc.Config{Limiter: rolling(1000, time.Second), Attempts: 2, Idempotent: func(string) bool { return c.idempotent }})
				s := &server{answer: func(ctx context.Context, n int) error {
					if n == 1 {
						return c.first(ctx)
					}
					return nil
				}}
				client, stop := s.dial(t, p)
				defer stop()
				_, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
				if status.Code(err) != c.code || !slices.Equal(s.times(), seconds(c.sent...)) {
					t.Errorf("%v, sent at %v", err, s.times())
				}
				got := p.Stats()
				if got.Accepted != c.settled.Accepted || got.Limited != c.settled.Limited || got.Failed != c.settled.Failed || got.Unknown+got.Unsent != 0 || got.InFlight != 0 {
					t.Errorf("settled as %+v", got)
				}
			})
			synctest.Test(t, func(t *testing.T) { // a pause concerns all calls
				p := pace(t, pacegrpc.Config{Limiter: rolling(1000, time.Second), Attempts: 1})
				s := &server{answer: func(ctx context.Context, n int) error {
					if n == 1 {
						return c.first(ctx)
					}
					return nil
				}}
				client, stop := s.dial(t, p)
				defer stop()
				client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
				_, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
				if c.next < 0 {
					if !errors.Is(err, pacegrpc.ErrPaused) || status.Code(err) != codes.Unavailable || len(s.times()) != 1 {
						t.Errorf("%v, sent at %v", err, s.times())
					}
				} else if at := s.times(); err != nil || at[1] != seconds(c.next)[0] {
					t.Errorf("%v, sent at %v", err, at)
				}
			})
		})
	}
}

// A reset may be only the time when a bucket is full again. Strangers share the bucket too, so the
// reset is no wait.
func TestRefills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fair, err := fairshare.NewFair(fairshare.FairConfig{Limit: 4500, Window: time.Hour, Rng: rand.New(rand.NewPCG(1, 2))})
		if err != nil {
			t.Fatal(err)
		}
		p := pace(t, pacegrpc.Config{Limiter: fair, Attempts: 2})
		s := &server{answer: func(ctx context.Context, n int) error {
			if n == 1 {
				return trailer(ctx, status.Error(codes.ResourceExhausted, "no"), "ratelimit-policy", `"hour";q=4500;w=3600`, "ratelimit", `"hour";r=0;t=3600`)
			}
			return nil
		}}
		client, stop := s.dial(t, p)
		defer stop()
		_, err = client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		if at := s.times(); err != nil || len(at) != 2 || at[1] > 5*time.Minute {
			t.Errorf("%v, sent at %v", err, at)
		}
	})
}

// Six calls through a limit of two in 10 s, unary and streams, and one that cannot meet its
// deadline.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := pace(t, pacegrpc.Config{Limiter: rolling(2, 10*time.Second)}), &server{message: 1}
		client, stop := s.dial(t, p)
		defer stop()
		for i := range 6 {
			if i%2 == 0 {
				if _, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}); err != nil {
					t.Error(err)
				}
				continue
			}
			w, err := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
			if err != nil {
				t.Fatal(err)
			}
			for err == nil {
				_, err = w.Recv()
			}
			if err != io.EOF {
				t.Error(err)
			}
		}
		if want := seconds(0, 0, 10, 10, 20, 20); !slices.Equal(s.times(), want) {
			t.Errorf("sent at %v, want %v", s.times(), want)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		before := time.Now()
		_, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		if !errors.Is(err, paceline.ErrDeadline) || status.Code(err) != codes.DeadlineExceeded || time.Since(before) != 0 {
			t.Errorf("after %v: %v", time.Since(before), err)
		}
		_, err = client.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
		if status.Code(err) != codes.DeadlineExceeded {
			t.Error(err)
		}
	})
}

// A stream of ten minutes counts until its first message, or with UntilEnd until its end. An
// abandoned stream is settled.
func TestStreams(t *testing.T) {
	for _, until := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			open, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 1, Late: -1})
			if err != nil {
				t.Fatal(err)
			}
			p, s := pace(t, pacegrpc.Config{Limiter: open, UntilEnd: until}), &server{message: 11, each: time.Minute}
			client, stop := s.dial(t, p)
			defer stop()
			var all sync.WaitGroup
			for range 2 {
				all.Go(func() {
					w, err := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
					for err == nil {
						_, err = w.Recv()
					}
					if err != io.EOF {
						t.Error(err)
					}
				})
			}
			all.Wait()
			want := seconds(0, 0)
			if until {
				want = seconds(0, 660)
			}
			if !slices.Equal(s.times(), want) {
				t.Errorf("UntilEnd %v: sent at %v, want %v", until, s.times(), want)
			}
			ctx, cancel := context.WithCancel(t.Context())
			if _, err := client.Watch(ctx, &grpc_health_v1.HealthCheckRequest{}); err != nil {
				t.Fatal(err)
			}
			cancel()
			synctest.Wait()
			if got := p.Stats(); got.InFlight != 0 || got.Unknown != 1 || got.Accepted != 2 {
				t.Errorf("UntilEnd %v: settled as %+v", until, got)
			}
		})
	}
}

// A stream that its caller forgets is settled too.
func TestForgottenStream(t *testing.T) {
	p, s := pace(t, pacegrpc.Config{Limiter: rolling(1, time.Hour)}), &server{message: 1}
	client, stop := s.dial(t, p)
	defer stop()
	if _, err := client.Watch(context.Background(), &grpc_health_v1.HealthCheckRequest{}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); p.Stats().InFlight != 0; runtime.GC() {
		if time.Now().After(end) {
			t.Fatal("it is in flight for ever")
		}
	}
}

// A waiting call fails when the server asks for a pause longer than MaxRetryAfter. Near the end of
// the pause, a new call waits.
func TestLongPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pace(t, pacegrpc.Config{Limiter: rolling(1, 10*time.Second)})
		s := &server{answer: func(_ context.Context, n int) error {
			if n == 1 {
				time.Sleep(time.Second)
				return info(codes.ResourceExhausted, 20*time.Minute)
			}
			return nil
		}}
		client, stop := s.dial(t, p)
		defer stop()
		var all sync.WaitGroup
		all.Go(func() { client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}) })
		synctest.Wait()
		for range 3 {
			all.Go(func() {
				_, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
				if !errors.Is(err, pacegrpc.ErrPaused) || time.Since(s.begin) != time.Second {
					t.Errorf("after %v: %v", time.Since(s.begin), err)
				}
			})
		}
		all.Wait()
		time.Sleep(16 * time.Minute)
		if _, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}); err != nil || !slices.Equal(s.times(), seconds(0, 1201)) {
			t.Errorf("%v, sent at %v", err, s.times())
		}
	})
}

// A refused stream pauses all calls. The caller opens it again.
func TestStreamRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pace(t, pacegrpc.Config{})
		s := &server{message: 1, answer: func(_ context.Context, n int) error {
			if n == 1 {
				return info(codes.ResourceExhausted, 7*time.Second)
			}
			return nil
		}}
		client, stop := s.dial(t, p)
		defer stop()
		w, err := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = w.Recv(); status.Code(err) != codes.ResourceExhausted {
			t.Error(err)
		}
		if _, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}); err != nil || !slices.Equal(s.times(), seconds(0, 7)) {
			t.Errorf("%v, sent at %v", err, s.times())
		}
	})
}

// Without a listener nothing was sent. The call costs nothing, and is sent again for any method.
func TestUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, dials := pace(t, pacegrpc.Config{Limiter: rolling(1, time.Hour)}), 0
		conn, err := grpc.NewClient("passthrough:///nobody", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithUnaryInterceptor(p.Unary),
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { dials++; return nil, errors.New("refused") }))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, err = grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		if got := p.Stats(); status.Code(err) != codes.Unavailable || got.Unsent != 3 || got.Admitted != 3 || dials == 0 {
			t.Errorf("%v: %+v", err, got)
		}
	})
}

func TestConfig(t *testing.T) {
	for _, c := range []struct {
		c    pacegrpc.Config
		want string
	}{
		{pacegrpc.Config{Attempts: -1}, "Attempts -1"}, {pacegrpc.Config{Adaptive: &limit.AdaptiveConfig{Min: -1}}, "Adaptive"}, {pacegrpc.Config{Backoff: backoff.Policy{Base: time.Hour, Max: 1}}, "Base"},
	} {
		if _, err := pacegrpc.New(c.c); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.c, err)
		}
	}
	p := pace(t, pacegrpc.Config{Limiter: rolling(1, time.Second), Cost: func(string, any) limit.Cost { return limit.Cost{limit.Requests: 2} }})
	client, stop := new(server).dial(t, p)
	defer stop()
	_, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if !errors.Is(err, paceline.ErrNever) || status.Code(err) != codes.ResourceExhausted {
		t.Error(err)
	}
}

func Example() {
	p, err := pacegrpc.New(pacegrpc.Config{
		Limiter:    limit.MustRolling(20, time.Second), // the server's rule
		Idempotent: func(method string) bool { return strings.HasSuffix(method, "/Check") },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, err := grpc.NewClient("localhost:50051", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(p.Unary), grpc.WithStreamInterceptor(p.Stream), grpc.WithDisableRetry())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(p.Stats().Admitted, "calls so far")
	// Output: 0 calls so far
}
