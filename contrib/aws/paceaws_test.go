package paceaws_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/paceline-go/paceline"
	paceaws "github.com/paceline-go/paceline/contrib/aws"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// service is STS, in memory and so in virtual time. It accepts 20 in any second, strictly, at up to
// 50 ms each way.
type service struct {
	mu                       sync.Mutex
	rule                     rule.Rule
	began                    time.Time
	rng                      *rand.Rand
	faults                   bool // a tenth is answered 500
	arrived, refused, served int
	last                     time.Duration
}

func newService(t *testing.T) *service {
	r, err := rule.NewRolling(rule.RollingConfig{Limit: 20, Window: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return &service{rule: r, began: time.Now(), rng: rand.New(rand.NewPCG(1, 2))}
}

const identity = `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>` +
	`<Arn>arn:aws:iam::1:user/u</Arn><UserId>u</UserId><Account>1</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`

// Do implements aws.HTTPClient.
func (s *service) Do(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	there, back := time.Duration(s.rng.Int64N(int64(50*time.Millisecond))), time.Duration(s.rng.Int64N(int64(50*time.Millisecond)))
	s.mu.Unlock()
	time.Sleep(there)
	status, body := s.answer()
	time.Sleep(back)
	return &http.Response{StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"text/xml"}}, Body: io.NopCloser(bytes.NewReader([]byte(body))), Request: r}, nil
}

func (s *service) answer() (status int, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := mono.Of(s.began, time.Now())
	ok := s.rule.Fits(now, 1)
	s.rule.Count(now, 1, ok)
	s.arrived++
	s.last = time.Since(s.began)
	fault := "<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error></ErrorResponse>"
	switch {
	case !ok:
		s.refused++
		return http.StatusBadRequest, fmt.Sprintf(fault, "Throttling", "Rate exceeded")
	case s.faults && s.rng.IntN(10) == 0:
		return http.StatusInternalServerError, fmt.Sprintf(fault, "InternalFailure", "try again")
	}
	s.served++
	return http.StatusOK, identity
}

func (s *service) client(options func(*aws.Config)) *sts.Client {
	cfg := aws.Config{
		Region: "us-east-1", HTTPClient: s,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIATEST", SecretAccessKey: "test"}, nil
		}),
	}
	options(&cfg)
	return sts.NewFromConfig(cfg)
}

// call makes n calls from 30 goroutines and returns how many failed.
func call(ctx context.Context, c *sts.Client, n int) (failed int) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for g := range 30 {
		wg.Go(func() {
			for i := g; i < n; i += 30 {
				if _, err := c.GetCallerIdentity(ctx, nil); err != nil {
					mu.Lock()
					failed++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return failed
}

func paced(t *testing.T, c paceaws.Config) (*paceaws.Pace, func(*aws.Config)) {
	pace, err := paceaws.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return pace, func(c *aws.Config) { c.APIOptions = append(c.APIOptions, pace.Add) }
}

// At full rate nothing is refused. Repeated requests wait like the others. Each attempt arrives
// once, and the only retries are the SDK's.
func TestFullRate(t *testing.T) {
	for _, faults := range []bool{false, true} {
		for _, new2026 := range []string{"", "true"} { // the SDK's next way of retrying
			t.Run(fmt.Sprintf("faults=%v,new=%v", faults, new2026), func(t *testing.T) {
				t.Setenv("AWS_NEW_RETRIES_2026", new2026)
				synctest.Test(t, func(t *testing.T) {
					s := newService(t)
					s.faults = faults
					pace, option := paced(t, paceaws.Config{Limiter: limit.MustRolling(20, time.Second)})
					failed := call(t.Context(), s.client(option), 600)
					if s.refused > 0 || s.served+failed != 600 || failed > 6 {
						t.Errorf("%d of %d were refused, %d of 600 calls failed, %d served", s.refused, s.arrived, failed, s.served)
					}
					// 20 in a second, the mean round trip and a margin. At the end the last retries
					// wait for a random backoff.
					least := 18.5
					if faults {
						least = 17
					}
					if rate := float64(s.arrived) / s.last.Seconds(); rate < least {
						t.Errorf("%.2f a second, want %v at least", rate, least)
					}
					if st := pace.Stats(); st.InFlight != 0 || st.Admitted != int64(s.arrived) || faults != (st.Failed > 0) {
						t.Errorf("%d in flight, %d admitted, %d failed; %d arrived", st.InFlight, st.Admitted, st.Failed, s.arrived)
					}
				})
			})
		}
	}
}

// Without a Pace the same calls are refused, and most fail in the end. So the service proves
// something.
func TestWithout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t)
		failed := call(t.Context(), s.client(func(*aws.Config) {}), 600)
		if s.refused < 100 || failed < 100 {
			t.Errorf("%d attempts for 600 calls in %v, %d refused, %d calls failed: want 100 of each", s.arrived, s.last, s.refused, failed)
		}
		t.Logf("%d attempts for 600 calls in %v, %d refused, %d calls failed", s.arrived, s.last, s.refused, failed)
	})
}

// The limit is unknown. A refusal pauses all clients of the Pace, and attempts begin again slowly.
// Some are still refused, since that is how the limit is found, but few calls fail.
func TestRefusalPausesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t)
		pace, option := paced(t, paceaws.Config{})
		failed := call(t.Context(), s.client(option), 600)
		without := call(t.Context(), newService(t).client(func(*aws.Config) {}), 600)
		if 5*failed > without {
			t.Errorf("%d calls failed with a Pace, %d without: want a fifth at most", failed, without)
		}
		if st := pace.Stats(); st.Limited != int64(s.refused) || s.refused == 0 {
			t.Errorf("%d refusals heard of, of %d", st.Limited, s.refused)
		}
		t.Logf("%d of %d refused, %d calls failed, %d without", s.refused, s.arrived, failed, without)
	})
}

// A call whose turn would come after its deadline fails at once. The SDK does not try it again.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t)
		_, option := paced(t, paceaws.Config{Limiter: limit.MustRolling(1, time.Hour)})
		c := s.client(option)
		if _, err := c.GetCallerIdentity(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		_, err := c.GetCallerIdentity(ctx, nil)
		var e *paceline.WaitError
		if !errors.Is(err, paceline.ErrDeadline) || !errors.As(err, &e) || time.Since(began) != 0 {
			t.Errorf("%v after %v, want that its turn comes too late, at once", err, time.Since(began))
		}
		if s.arrived != 1 {
			t.Errorf("%d arrived", s.arrived)
		}
	})
}

// Cost is called with the names of the operation.
func TestCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t)
		asked := ""
		_, option := paced(t, paceaws.Config{Limiter: limit.MustRolling(5, time.Second), Cost: func(service, operation string) limit.Cost {
			asked = service + " " + operation
			return limit.Cost{limit.Requests: 6}
		}})
		_, err := s.client(option).GetCallerIdentity(t.Context(), nil)
		if !errors.Is(err, paceline.ErrNever) || asked != "STS GetCallerIdentity" {
			t.Errorf("%v, asked for %q", err, asked)
		}
	})
}
