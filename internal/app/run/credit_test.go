package run

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/pool"
)

// outOfCredit are answers of servers whose account has no credit.
var outOfCredit = []struct {
	status     int
	body, says string
}{
	{400, `{"error":{"message":"insufficient_quota: the balance is spent","type":"insufficient_quota"}}`, "the balance is spent"},
	{400, `{"error":{"message":"Budget has been exceeded! Max budget: 10.0","type":"budget_exceeded","code":"400"}}`, "Budget has been exceeded!"},
	{402, `{"error":{"message":"Insufficient Balance","code":"invalid_request_error"}}`, "Insufficient Balance"},
	{402, `{"detail":"Payment required"}`, "Payment required"},
	{402, ``, "402 Payment Required"},
	{403, `{"error":{"message":"the token quota is not enough","code":"insufficient_user_quota"}}`, "the token quota is not enough"},
	{429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota"}}`, "You exceeded your current quota"},
}

// A key that runs out of credit in the middle of a file costs no request: the run ends, says it, and
// the next one resumes. With 402 and 400, all that was left became dead letters.
func TestOutOfCreditInTheMiddle(t *testing.T) {
	for _, c := range outOfCredit {
		synctest.Test(t, func(t *testing.T) {
			asked, paid := 0, false
			v := newInTime(t, oneByOne(func(w http.ResponseWriter, _ *http.Request) {
				if asked++; asked > 5 && !paid {
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, c.body)
				}
			}), perSecond(20))
			v.keys("A")
			const n = 60
			lines := requests(n, "http://server/")
			got := v.run(lines)
			if !errors.Is(got.err, pool.ErrExhausted) || got.Done != 5 || got.Dead != 0 || got.Left != n-5 || got.Lost != 0 || asked > 5+20 {
				t.Errorf("%d %s: %+v, %v; asked %d times", c.status, c.body, got.Totals, got.err, asked)
			}
			if strings.Count(got.notices, "key A has no credit: ") != 1 || !strings.Contains(got.notices, c.says) || strings.Contains(got.notices, "banned") {
				t.Errorf("%d: %s", c.status, got.notices)
			}
			paid = true
			if got = v.run(lines); got.err != nil || got.Done != n-5 || got.Repeats != 0 {
				t.Errorf("again: %+v, %v: %s", got.Totals, got.err, got.notices)
			}
		})
	}
}

// A key without credit is not used any more while another serves.
func TestOneOfTwoOutOfCredit(t *testing.T) {
	for _, c := range outOfCredit {
		synctest.Test(t, func(t *testing.T) {
			refused := 0
			v := newInTime(t, oneByOne(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("api_key") == "A" {
					refused++
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, c.body)
				}
			}), perSecond(20))
			v.keys("A", "B")
			got := v.run(requests(60, "http://server/"))
			if got.err != nil || got.Done != 60 || got.Dead != 0 || refused == 0 || refused > 20 {
				t.Errorf("%d %s: %+v, %v; refused %d times", c.status, c.body, got.Totals, got.err, refused)
			}
		})
	}
}

// Where the run has no key, 402 may be about one page or one host of many. It ends no run then, as
// 403 does not.
func TestPaidPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newInTime(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "0") {
				w.WriteHeader(http.StatusPaymentRequired)
			}
		}), perSecond(20))
		var lines []string
		for i := range 60 {
			lines = append(lines, request(fmt.Sprint("q", i), fmt.Sprint("http://server/", i)))
		}
		if got := v.run(lines); got.err != nil || got.Done != 54 || got.Dead != 6 {
			t.Errorf("%+v, %v: %s", got.Totals, got.err, got.notices)
		}
	})
}

// A refusal that does not say when to come back is reported, with its words, if the run then waits
// for long.
func TestLongWaitIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		v := newInTime(t, oneByOne(func(w http.ResponseWriter, _ *http.Request) {
			if asked++; asked == 6 {
				w.WriteHeader(http.StatusTooManyRequests)
				_, _ = io.WriteString(w, `{"status":429,"error":"INSUFFICIENT QUOTA","message":"You exceeded your current quota of tokens per minute."}`)
			}
		}), format.Rate{N: 6000, Per: 60e9, Text: "6000/m"})
		v.keys("A")
		got := v.run(requests(40, "http://server/"))
		const says = "answered 429 Too Many Requests: You exceeded your current quota of tokens per minute.; it does not say when to come back: the next request goes about "
		if got.err != nil || got.Done != 40 || strings.Count(got.notices, says) != 1 {
			t.Errorf("%+v, %v in %v: %s", got.Totals, got.err, got.took, got.notices)
		}
	})
}
