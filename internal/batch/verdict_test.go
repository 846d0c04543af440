package batch

import (
	"net/http"
	"testing"
	"time"

	"github.com/paceline-go/paceline/dispatch"
	"github.com/paceline-go/paceline/limit"
)

func TestWhatAnAnswerProves(t *testing.T) {
	retry := http.Header{"Retry-After": {"3"}}
	for _, c := range []struct {
		status int
		header http.Header
		result limit.Result
		after  time.Duration
		final  bool
		also   func(dispatch.Answer) bool
	}{
		{200, nil, limit.Accepted, 0, true, nil},
		{204, retry, limit.Accepted, 0, true, nil},
		{302, nil, limit.Accepted, 0, true, nil},
		{400, nil, limit.Failed, 0, true, func(a dispatch.Answer) bool { return a.Invalid }},
		{408, nil, limit.Failed, 0, false, nil},
		{418, nil, limit.Failed, 0, false, func(a dispatch.Answer) bool { return a.Banned }},
		{429, nil, limit.Limited, 0, false, nil},
		{429, retry, limit.Limited, 3 * time.Second, false, nil},
		{500, nil, limit.Failed, 0, false, nil},
		{500, retry, limit.Failed, 3 * time.Second, false, nil},
		{503, nil, limit.Failed, 0, false, nil},
		{503, retry, limit.Limited, 3 * time.Second, false, nil},
	} {
		r, err := New(Config{BanStatus: []int{418}})
		if err != nil {
			t.Fatal(err)
		}
		ans, final := r.judge(&job{res: response{status: c.status, header: c.header, written: true, ended: time.Now()}})
		if ans.Result != c.result || ans.RetryAfter.Round(time.Millisecond) != c.after || final != c.final || c.also != nil && !c.also(ans) {
			t.Errorf("%d %v: %+v, final %v", c.status, c.header, ans, final)
		}
	}
}
