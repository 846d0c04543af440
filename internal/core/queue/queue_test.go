package queue_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/limit"
)

func TestFirstComeFirstServed(t *testing.T) {
	timeline(t, queue.Config{}, `
		0s  head      -> none
		0s  wake      -> none
		0s  submit a  -> ok
		0s  submit b  -> ok
		1s  submit c  -> ok
		1s  waiting   -> a b c
		1s  head      -> a
		1s  head      -> a
		1s  take      -> a 1
		1s  take      -> b 1
		2s  done a    -> done
		2s  take      -> c 1
		2s  take      -> none
		3s  done c    -> done
		3s  done b    -> done
		3s  counts    -> 3: 3 done
	`)
}

func TestPriorityIsAHeadStart(t *testing.T) {
	timeline(t, queue.Config{HeadStart: 10 * time.Second}, `
		0s  submit low           -> ok
		0s  submit lower prio=-1 -> ok
		9s  submit high prio=1   -> ok
		10s submit tie prio=1    -> ok
		11s submit late prio=1   -> ok
		12s submit top prio=2    -> ok
		12s waiting              -> top high low tie late lower
		12s take                 -> top 1
		12s take                 -> high 1
		12s take                 -> low 1
		12s take                 -> tie 1
		12s take                 -> late 1
		12s take                 -> lower 1
	`)
	timeline(t, queue.Config{}, `
		0s     submit low         -> ok
		59.9s  submit high prio=1 -> ok
		60.1s  submit next prio=1 -> ok
		61s    waiting            -> high low next
	`)
	timeline(t, queue.Config{HeadStart: -1}, `
		0s  submit low          -> ok
		0s  submit high prio=9  -> ok
		0s  submit last prio=-9 -> ok
		0s  waiting             -> low high last
	`)
}

// Head starts beyond the range of instants are as large as that, and do not wrap round.
func TestPrioritiesBeyondTheRange(t *testing.T) {
	timeline(t, queue.Config{HeadStart: 1 << 62}, `
		0s  submit normal                        -> ok
		0s  submit low prio=-1                   -> ok
		0s  submit lowest prio=-9223372036854775808 -> ok
		0s  submit high prio=1                   -> ok
		0s  submit higher prio=2                 -> ok
		0s  submit highest prio=9223372036854775807 -> ok
		0s  submit again prio=4                  -> ok
		0s  waiting                              -> higher highest again high normal low lowest
	`)
	timeline(t, queue.Config{}, `
		min submit a prio=1 ttl=-1s -> ok
		min submit b prio=2         -> ok
		min submit c prio=-1        -> ok
		min expire                  -> a expired
		max submit d prio=-1 ttl=1s -> ok
		max submit e                -> ok
		max waiting                 -> b c d e
		max expire                  -> d expired
	`)
}

func TestRetriesKeepTheirPlace(t *testing.T) {
	timeline(t, queue.Config{}, `
		0s  submit a                 -> ok
		1s  submit b                 -> ok
		1s  take                     -> a 1
		2s  retry a until=4s why=429 -> waiting
		2s  info a                   -> 0s never 1 429
		2s  head                     -> b
		2s  wake                     -> 4s
		2s  waiting                  -> a b
		3s  submit c                 -> ok
		3.999999999s head            -> b
		4s  wake                     -> none
		4s  head                     -> a
		4s  take                     -> a 2
		4s  take                     -> b 1
		4s  retry b                  -> waiting
		4s  take                     -> b 2
		4s  take                     -> c 1
	`)
}

func TestRetriesLast(t *testing.T) {
	timeline(t, queue.Config{RetriesLast: true, HeadStart: 10 * time.Second}, `
		0s  submit a            -> ok
		1s  submit b            -> ok
		1s  take                -> a 1
		2s  retry a             -> waiting
		2s  submit c            -> ok
		2s  waiting             -> b a c
		2s  take b              -> b 1
		2s  retry b until=5s    -> waiting
		3s  submit d            -> ok
		5s  submit e            -> ok
		5s  waiting             -> a c d b e
		5s  submit f prio=1     -> ok
		5s  take                -> f 1
		6s  retry f             -> waiting
		6s  waiting             -> f a c d b e
		6s  info f              -> 5s never 1
	`)
}

func TestDeadlines(t *testing.T) {
	timeline(t, queue.Config{}, `
		0s    submit slow ttl=3s   -> ok
		0s    submit quick ttl=1s  -> ok
		0s    submit never         -> ok
		0s    submit late ttl=-1ns -> ok
		0s    wake                 -> 0s
		0s    head                 -> slow
		0s    expire               -> late expired
		0s    info quick           -> 0s 1s 0
		0s    wake                 -> 1s
		0.5s  expire               -> none
		1s    expire               -> quick expired
		1s    info quick           -> 0s 0s 0
		1s    state quick          -> none
		1s    wake                 -> 3s
		1s    take slow            -> slow 1
		1s    wake                 -> none
		9s    expire               -> none
		9s    done slow            -> done
		9s    counts               -> 4: 1 waiting 1 done 2 expired
	`)
	// Several at once: in the order of their deadlines, then of submission.
	timeline(t, queue.Config{}, `
		0s    submit a ttl=3s -> ok
		1s    submit b ttl=1s -> ok
		1s    submit c ttl=2s -> ok
		1s    submit d ttl=1s -> ok
		9s    expire          -> b expired, d expired, a expired, c expired
	`)
}

// A retry that cannot be made in time is not made to wait for it.
func TestRetryAndDeadline(t *testing.T) {
	timeline(t, queue.Config{MaxAttempts: 3}, `
		0s  submit a ttl=10s      -> ok
		0s  submit b ttl=10s      -> ok
		0s  submit c ttl=10s      -> ok
		0s  take                  -> a 1
		0s  take                  -> b 1
		0s  take                  -> c 1
		1s  retry a until=9.999s  -> waiting
		1s  retry b until=10s     -> expired
		1s  wake                  -> 9.999s
		9.999s wake               -> 10s
		10s retry c               -> expired
		10s expire                -> a expired
		10s counts                -> 3: 3 expired
	`)
	// The last attempt: no backoff is due, so it cannot be too long.
	timeline(t, queue.Config{MaxAttempts: 1}, `
		0s  submit a ttl=10s     -> ok
		0s  submit b ttl=10s     -> ok
		0s  take                 -> a 1
		0s  take                 -> b 1
		1s  retry a until=20s    -> dead
		10s retry b              -> expired
	`)
}

func TestDeadAfterTheLastAttempt(t *testing.T) {
	for _, c := range []struct{ config, want int }{{0, 5}, {1, 1}, {2, 2}} {
		l := newLine(t, queue.Config{MaxAttempts: c.config})
		l.do(0, "submit", []string{"a"})
		attempts := 0
		for l.Info(l.tickets["a"]).State == queue.Waiting {
			attempts++
			if got := l.do(0, "take", nil); got != fmt.Sprint("a ", attempts) {
				t.Fatal(got)
			}
			l.do(0, "retry", []string{"a"})
		}
		if attempts != c.want || l.Info(l.tickets["a"]).State != queue.Dead {
			t.Errorf("MaxAttempts %d: %v after %d attempts", c.config, l.Info(l.tickets["a"]).State, attempts)
		}
	}
}

func TestExpiredRequestsAreRetried(t *testing.T) {
	timeline(t, queue.Config{OnExpiry: queue.Retry, MaxAttempts: 3}, `
		0s  submit a ttl=1s           -> ok
		0s  submit b ttl=1s           -> ok
		0s  submit c ttl=-1s          -> ok
		0s  expire                    -> c expired
		1s  expire                    -> a waiting, b waiting
		1s  info a                    -> 0s 2s 1 deadline passed while waiting
		1s  take                      -> a 2
		1.5s retry a until=4s why=429 -> waiting
		1.5s info a                   -> 0s 5s 2 429
		2s  expire                    -> b waiting
		2s  take b                    -> b 3
		9s  retry b why=late          -> dead
		9s  expire                    -> a dead
		9s  dead                      -> b@9s:3:late a@9s:3:deadline passed while waiting
		9s  counts                    -> 3: 1 expired 2 dead
	`)
	// A retry may have longer than the first attempt had, and an instant is not put off.
	timeline(t, queue.Config{OnExpiry: queue.Retry, MaxAttempts: 3}, `
		0s  submit a ttl=1s renewal=5s  -> ok
		0s  submit b ttl=1s renewal=-1s -> ok
		0s  submit c ttl=2s renewal=-1s -> ok
		1s  expire                      -> a waiting, b expired
		1s  info a                      -> 0s 6s 1 deadline passed while waiting
		1s  take c                      -> c 1
		1.5s retry c until=3s why=429   -> expired
	`)
	// The retries of a request without a deadline have none either, whatever its renewal.
	timeline(t, queue.Config{OnExpiry: queue.Retry}, `
		0s  submit a renewal=1s -> ok
		0s  take                -> a 1
		0s  retry a until=1s    -> waiting
		9s  expire              -> none
		9s  take                -> a 2
	`)
	// A request in a backoff stays there.
	timeline(t, queue.Config{OnExpiry: queue.Retry, RetriesLast: true}, `
		0s  submit a ttl=1s    -> ok
		0s  submit b           -> ok
		1s  expire             -> a waiting
		1s  waiting            -> b a
	`)
}

func TestReturnedAttemptsAreNotCounted(t *testing.T) {
	timeline(t, queue.Config{MaxAttempts: 1}, `
		0s  submit a ttl=5s -> ok
		0s  submit b        -> ok
		0s  take            -> a 1
		1s  return a        -> waiting
		1s  info a          -> 0s 5s 0
		1s  take            -> a 1
		6s  return a        -> waiting
		6s  expire          -> a expired
	`)
}

func TestFullQueue(t *testing.T) {
	timeline(t, queue.Config{MaxLen: 2, MaxAttempts: 2}, `
		0s  submit a id=a    -> ok
		0s  submit b         -> ok
		0s  submit c         -> full
		0s  submit a id=a    -> duplicate
		0s  take             -> a 1
		0s  submit c         -> ok
		0s  submit d         -> full
		1s  retry a          -> waiting
		1s  waiting          -> a b c
		1s  take             -> a 2
		1s  submit d         -> full
		1s  kill a why=x     -> dead
		1s  requeue a        -> full
		1s  state a          -> dead
		1s  cancel b         -> true
		1s  requeue a        -> ok
		1s  counts           -> 3: 2 waiting 1 cancelled
	`)
	q := filled(t, queue.Config{MaxLen: 3}, 3, simple)
	if _, err := q.Submit(0, simple(0)); !errors.Is(err, queue.ErrFull) || !strings.Contains(err.Error(), "MaxLen 3") {
		t.Error(err)
	}
}

func TestIDs(t *testing.T) {
	timeline(t, queue.Config{}, `
		0s  submit a id=x         -> ok
		0s  submit again id=x     -> duplicate
		0s  lookup x              -> a waiting
		0s  take                  -> a 1
		0s  submit again id=x     -> duplicate
		0s  lookup x              -> a in flight
		1s  kill a why=invalid    -> dead
		1s  submit again id=x     -> dead
		1s  lookup x              -> a dead
		1s  drop a                -> true
		1s  lookup x              -> none
		1s  submit b id=x         -> ok
		1s  take                  -> b 1
		1s  done b                -> done
		2s  submit c id=x ttl=1s  -> ok
		3s  expire                -> c expired
		3s  submit d id=x         -> ok
		3s  cancel d              -> true
		3s  submit e id=x         -> ok
		3s  lookup x              -> e waiting
		3s  lookup y              -> none
	`)
	q := newQueue(t, queue.Config{})
	ticket, _ := q.Submit(0, queue.Request{ID: "x"})
	if _, err := q.Submit(0, queue.Request{ID: "x"}); err == nil || !strings.Contains(err.Error(), `"x" is waiting`) {
		t.Error(err)
	}
	q.Kill(0, ticket, "400 bad symbol")
	if _, err := q.Submit(0, queue.Request{ID: "x"}); err == nil || !strings.Contains(err.Error(), `"x" (400 bad symbol)`) {
		t.Error(err)
	}
}

func TestDeadLetters(t *testing.T) {
	const die = `
		0s  submit a id=a      -> ok
		0s  submit b id=b      -> ok
		0s  submit c id=c      -> ok
		0s  submit d id=d      -> ok
		0s  take               -> a 1
		1s  kill c why=3       -> dead
		2s  kill a why=1       -> dead
		3s  kill d why=4       -> dead
	`
	timeline(t, queue.Config{}, die+`
		3s  dead               -> c@1s:0:3 a@2s:1:1 d@3s:0:4
		4s  drop a             -> true
		4s  drop a             -> false
		4s  requeue a          -> gone
		4s  requeue b          -> gone
		4s  dead               -> c@1s:0:3 d@3s:0:4
		5s  requeue c          -> ok
		5s  requeue c          -> gone
		5s  info c             -> 5s never 0
		5s  waiting            -> b c
		5s  kill c why=5       -> dead
		5s  kill b why=5       -> dead
		5s  dead               -> d@3s:0:4 c@5s:0:5 b@5s:0:5
		5s  counts             -> 4: 3 dead 1 dropped
	`)
	timeline(t, queue.Config{KeepDead: 2}, die+`
		3s  dead               -> a@2s:1:1 d@3s:0:4
		3s  state c            -> none
		3s  requeue c          -> gone
		3s  drop c             -> false
		3s  submit c id=c      -> ok
		3s  counts             -> 5: 2 waiting 3 dead
	`)
	timeline(t, queue.Config{KeepDead: -1}, die+`
		3s  dead               ->
		3s  state a            -> none
		3s  submit a id=a      -> ok
		3s  counts             -> 5: 2 waiting 3 dead
	`)
}

func TestTimeDoesNotGoBack(t *testing.T) {
	timeline(t, queue.Config{}, `
		5s  submit a ttl=1s  -> ok
		0s  submit b ttl=1s  -> ok
		0s  info b           -> 5s 6s 0
		0s  wake             -> 6s
		6s  wake             -> 6s
		0s  expire           -> a expired, b expired
	`)
}

// A request without a cost costs one request, and is not free.
func TestCostOfARequest(t *testing.T) {
	q, err := queue.New(queue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	tokens := limit.Cost{limit.Tokens: 900}
	for _, tc := range []struct {
		r    queue.Request
		want limit.Cost
	}{
		{queue.Request{}, limit.One},
		{queue.Request{Free: true}, limit.Cost{}},
		{queue.Request{Cost: tokens}, tokens},
	} {
		ticket, err := q.Submit(0, tc.r)
		if err != nil {
			t.Fatal(err)
		}
		if got := q.Info(ticket).Request.Cost; got != tc.want {
			t.Errorf("%+v costs %v, want %v", tc.r, got, tc.want)
		}
	}
	_, err = q.Submit(0, queue.Request{ID: "x", Cost: tokens, Free: true})
	if err == nil || err.Error() != `queue: request "x" is Free and costs 900 tokens` {
		t.Error(err)
	}
	if c := q.Counts(); c.Submitted != 3 {
		t.Errorf("%+v", c)
	}
}

func TestMisuse(t *testing.T) {
	timeline(t, queue.Config{}, `
		0s  take nobody     -> panic: queue: Take with a stale ticket
		0s  submit a        -> ok
		0s  done a          -> panic: queue: Done of a request that is waiting
		0s  take            -> a 1
		0s  take a          -> panic: queue: Take of a request that is in flight
		0s  cancel a        -> false
		0s  done a          -> done
		0s  done a          -> panic: queue: Done with a stale ticket
		0s  cancel a        -> false
		0s  submit b        -> ok
		0s  take a          -> panic: queue: Take with a stale ticket
		0s  counts          -> 2: 1 waiting 1 done
	`)
}

// The result of a transition is enough to report on the request.
func TestEnded(t *testing.T) {
	q := newQueue(t, queue.Config{})
	r := queue.Request{ID: "x", Cost: limit.Cost{limit.Weight: 3}, Priority: 2, TTL: time.Minute, Value: 42}
	ticket, err := q.Submit(5, r)
	if err != nil {
		t.Fatal(err)
	}
	q.Take(6, ticket)
	want := queue.Ended{Ticket: ticket, State: queue.Waiting, Request: r, Submitted: 5, Attempts: 1, Reason: "limited"}
	if got := q.Retry(7, ticket, 7, "limited"); got != want || got.State.Ended() {
		t.Errorf("%+v, want %+v", got, want)
	}
	want.Attempts, want.State = 2, queue.Done
	q.Take(8, ticket)
	if got := q.Done(9, ticket); got != want || !got.State.Ended() {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestNewNamesTheField(t *testing.T) {
	for _, c := range []struct {
		config queue.Config
		want   string
	}{
		{queue.Config{MaxLen: -1}, "MaxLen -1"},
		{queue.Config{MaxAttempts: -2}, "MaxAttempts -2"},
		{queue.Config{OnExpiry: 7}, "OnExpiry 7"},
	} {
		if _, err := queue.New(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.config, err, c.want)
		}
	}
}

func TestCountsCheck(t *testing.T) {
	for _, c := range []struct {
		counts queue.Counts
		ok     bool
	}{
		{queue.Counts{}, true},
		{queue.Counts{Submitted: 28, Waiting: 1, InFlight: 2, Done: 3, Expired: 4, Dead: 5, Dropped: 6, Cancelled: 7}, true},
		{queue.Counts{Submitted: 2, Done: 1}, false},
		{queue.Counts{Submitted: 1, Done: 1, Dead: 1}, false},
	} {
		if err := c.counts.Check(); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.counts, err)
		}
	}
}

func Example() {
	q, err := queue.New(queue.Config{MaxAttempts: 2})
	if err != nil {
		panic(err)
	}
	const second = 1_000_000_000
	q.Submit(0, queue.Request{ID: "a", Cost: limit.One, TTL: time.Minute})
	q.Submit(1*second, queue.Request{ID: "b", Cost: limit.One})

	t, r, _ := q.Head(1 * second)
	fmt.Println(r.ID, "attempt", q.Take(1*second, t))
	fmt.Println(r.ID, q.Retry(2*second, t, 4*second, "429").State)

	wake, _ := q.Wake(2 * second)
	fmt.Println("ask again at", wake)

	t, r, _ = q.Head(wake) // ahead of b, which came later
	fmt.Println(r.ID, "attempt", q.Take(wake, t))
	e := q.Retry(5*second, t, 9*second, "429")
	fmt.Println(e.Request.ID, e.State, "after", e.Attempts, "attempts:", e.Reason)
	// Output:
	// a attempt 1
	// a waiting
	// ask again at 4s
	// a attempt 2
	// a dead after 2 attempts: 429
}
