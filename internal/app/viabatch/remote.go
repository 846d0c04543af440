package viabatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/send"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/provider"
)

// remote sends requests to the provider.
type remote struct {
	c      *Config
	base   string
	client *http.Client
	// secrets finds the key in what the provider says. Nothing shows it.
	secrets *format.Secrets
}

func newRemote(c *Config) *remote {
	u := *c.Format.Base()
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1")
	base := c.Base
	if base == nil {
		base = http.DefaultTransport
	}
	secrets := format.NewSecrets([]secret.Key{{Name: c.Key.Name, Value: c.Key.Secret}}, c.Header, nil, c.Format)
	return &remote{c: c, base: u.String(), secrets: secrets, client: &http.Client{Transport: base,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// refusal is an answer that says no.
type refusal struct {
	status  int
	message string
}

func (r *refusal) Error() string { return fmt.Sprintf("answered %d: %s", r.status, r.message) }

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
		switch {
		case ctx.Err() != nil:
			if err == nil {
				resp.Body.Close()
			}
			return nil, context.Cause(ctx)
		case err == nil && resp.StatusCode/100 == 2:
			return resp, nil
		case err != nil && c.once:
			return nil, fmt.Errorf("%w: %w", errUnclear, err)
		case err == nil:
			text, _ := io.ReadAll(io.LimitReader(resp.Body, mostRefusal))
			resp.Body.Close()
			limited := resp.StatusCode == http.StatusTooManyRequests
			if resp.StatusCode >= http.StatusInternalServerError && c.once {
				return nil, fmt.Errorf("%w: %d", errUnclear, resp.StatusCode)
			}
			if !limited && resp.StatusCode < http.StatusInternalServerError {
				return nil, &refusal{resp.StatusCode, r.shown(provider.Message(text))}
			}
			if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 {
				rest = max(rest, min(time.Duration(n)*time.Second, mostRest))
			}
		}
		if err := sleep(ctx, rest); err != nil {
			return nil, err
		}
	}
}

// shown is a text without keys, on one line.
func (r *remote) shown(line string) string {
	line, _ = r.secrets.HideIn(line)
	return text.Sanitize(line)
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
	if r.c.Format.Form() == format.Anthropic {
		q.Header.Set("Anthropic-Version", "2023-06-01")
	}
	q.Header.Set("User-Agent", "paceline")
	for _, t := range r.c.Header {
		if send.IsFieldName(t.Name()) {
			q.Header.Set(t.Name(), t.Fill(&format.Values{Key: r.c.Key.Secret}))
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
		if err := sleep(ctx, firstRest); err != nil {
			return err
		}
	}
}
