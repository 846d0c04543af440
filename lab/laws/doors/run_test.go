package doors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/testkit/fakeconn"
)

// throughRun is what `paceline run` does, without a journal, whose fsync takes real time, over connections in memory.
func throughRun(ctx context.Context, t *testing.T, c *client) (served int) {
	network := fakeconn.New()
	server := &http.Server{Handler: c.net}
	go func() { _ = server.Serve(network) }()
	defer server.Close()
	law := &c.quota.law
	config := run.Config{
		Concurrency: 1, Stdout: io.Discard, Queue: 4, Attempts: 1 << 20,
		Dial: network.Dial,
	}
	if c.quota.auto {
		config.Auto = &run.Auto{Strangers: true, Seed: c.seed}
	} else {
		config.Limits, config.Strangers = []format.Rate{{N: law.Limit, Per: law.Window}}, &run.Sharing{Kind: law.Kind, Seed: c.seed}
	}
	r, err := run.New(config)
	if err == nil {
		err = r.Open()
	}
	if err != nil {
		t.Error(err)
		return 0
	}
	in, lines := io.Pipe()
	go func() {
		for i := 0; ; i++ {
			if _, err := fmt.Fprintf(lines, `{"id":"q%d","url":%q}`+"\n", i, c.url()); err != nil {
				return
			}
		}
	}()
	context.AfterFunc(ctx, r.Drain)
	err = r.Send(context.WithoutCancel(ctx), "lines", in)
	in.Close()
	totals, closing := r.Close()
	if err = errors.Join(err, closing); err != nil || totals.Lost > 0 {
		t.Errorf("%v; %+v", err, totals)
	}
	return totals.Done
}
