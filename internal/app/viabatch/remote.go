package viabatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/send"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/provider"
)

// remote sends requests to the provider.
type remote struct {
	b      *batches
	base   string
	client *http.Client
}

func newRemote(b *batches) *remote {
	base := b.Base
	if base == nil {
		base = http.DefaultTransport
	}
	return &remote{b: b, base: b.API.String(), client: &http.Client{Transport: base,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Refusal is an answer that says no.
type Refusal struct {
	Status  int
	Message string
}

func (r *Refusal) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("answered %d: %s", r.Status, r.Message), ": ")
}

// errUnclear says that a request may have been served.
var errUnclear = errors.New("no answer")

const (
	mostRefusal = 64 << 10
	mostObject  = 8 << 20
	firstRest   = time.Second
	mostRest    = time.Minute
)

// call is a request to the provider.
type call struct {
	method, path string
	kind         string                        // of the body
	body         func() (io.ReadCloser, int64) // nil: none
	once         bool                          // it must not be served twice
}

// ask makes a request. It is repeated until it is answered, with a pause after each refusal by a limit
// or failure. A failure of one that must not be served twice is errUnclear.
func (r *remote) ask(ctx context.Context, c *call) (*http.Response, error) {
	for rest := firstRest; ; rest = min(2*rest, mostRest) {
		resp, err := r.try(ctx, c)
		why := ""
		switch {
		case ctx.Err() != nil:
			if err == nil {
				resp.Body.Close()
			}
			return nil, context.Cause(ctx)
		case err == nil && resp.StatusCode/100 == 2:
			r.silent("")
			return resp, nil
		case err != nil && c.once:
			r.silent(bare(err).Error())
			return nil, fmt.Errorf("%w: %w", errUnclear, err)
		case err != nil:
			why = bare(err).Error()
		default:
			text, _ := io.ReadAll(io.LimitReader(resp.Body, mostRefusal))
			resp.Body.Close()
			no := &Refusal{resp.StatusCode, r.shown(provider.Message(text))}
			why = no.Error()
			limited := resp.StatusCode == http.StatusTooManyRequests
			if resp.StatusCode >= http.StatusInternalServerError && c.once {
				r.silent(why)
				return nil, fmt.Errorf("%w: %d", errUnclear, resp.StatusCode)
			}
			if !limited && resp.StatusCode < http.StatusInternalServerError {
				return nil, no
			}
			if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 {
				rest = max(rest, min(time.Duration(n)*time.Second, mostRest))
			}
		}
		r.silent(why)
		if err := r.b.rest(ctx, rest); err != nil {
			return nil, err
		}
	}
}

// silent notes why the provider gives no answer; empty: it has given one. The first and the last of each silence are
// said.
func (r *remote) silent(why string) {
	was := r.b.progress.Silent
	r.b.progress.Silent = r.shown(why)
	switch {
	case was == "" && why != "":
		r.b.Notice(fmt.Sprintf("%s does not serve (%s); it is asked again until it does, at least once in %v",
			r.b.API.Host, r.b.progress.Silent, mostRest))
	case was != "" && why == "":
		r.b.Notice(r.b.API.Host + " serves again")
	}
}

// bare is the error of a request without its method and URL.
func bare(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// shown is a text without keys, on one line.
func (r *remote) shown(line string) string {
	return text.Sanitize(r.b.results.Sanitized(line))
}

func (r *remote) try(ctx context.Context, c *call) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, c.method, r.base+c.path, nil)
	if err != nil {
		return nil, err
	}
	if c.body != nil {
		q.Body, q.ContentLength = c.body()
		q.Header.Set("Content-Type", c.kind)
	}
	if r.b.Provider == format.Anthropic {
		q.Header.Set("Anthropic-Version", "2023-06-01")
	}
	q.Header.Set("User-Agent", "paceline")
	for _, t := range r.b.Header {
		if send.IsFieldName(t.Name()) {
			q.Header.Set(t.Name(), t.Fill(&format.Values{Key: r.b.Key.Secret}))
		}
	}
	return r.client.Do(q)
}

// object makes a request and reads its answer into to.
func (r *remote) object(ctx context.Context, c *call, to any) error {
	resp, err := r.ask(ctx, c)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(io.LimitReader(resp.Body, mostObject)).Decode(to); err != nil {
		return fmt.Errorf("%w: %w", errUnclear, err)
	}
	return nil
}

// get reads an object. What cannot be read is asked for again.
func (r *remote) get(ctx context.Context, path string, to any) error {
	for {
		err := r.object(ctx, &call{method: http.MethodGet, path: path}, to)
		if !errors.Is(err, errUnclear) {
			return err
		}
		if err := r.b.rest(ctx, firstRest); err != nil {
			return err
		}
	}
}
