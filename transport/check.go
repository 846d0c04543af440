package transport

import (
	"bytes"
	"io"
	"net/http"

	"github.com/paceline-go/paceline/provider/classify"
)

const whyChecked = "CheckRetry says no"

// check asks Config.CheckRetry, which may overrule a verdict where that is a matter of opinion.
func (c *call) check(v *classify.Verdict, a *Attempt, resp *http.Response, last bool) error {
	shown := resp
	if resp != nil && resp.Body != nil {
		copied := &struct {
			http.Response
			peeked
		}{*resp, peeked{rest: resp.Body}}
		copied.Response.Body = &copied.peeked
		shown = &copied.Response
		defer func() { resp.Body = copied.peeked.whole() }()
	}
	again, err := c.t.config.CheckRetry(c.ctx, *a, shown)
	switch {
	case err != nil:
		v.Again, v.Why = false, whyChecked
		return err
	case again == v.Again:
	case !again:
		v.Again, v.Why = false, whyChecked
	case last:
		v.Why = "that was the last attempt"
	case c.getBody == nil:
		v.Why = "its body cannot be read again: the request has no GetBody"
	default:
		v.Again, v.Why = true, ""
	}
	return nil
}

// peeked is the body of an answer while CheckRetry may read it.
type peeked struct {
	rest io.ReadCloser
	read bytes.Buffer
	err  error
}

func (p *peeked) Read(b []byte) (int, error) {
	n, err := p.rest.Read(b)
	p.read.Write(b[:n])
	if err != nil {
		p.err = err
	}
	return n, err
}

// Close leaves the body open, since it belongs to another owner.
func (p *peeked) Close() error { return nil }

// whole returns the body as it was.
func (p *peeked) whole() io.ReadCloser {
	if p.read.Len() == 0 && p.err == nil {
		return p.rest
	}
	w := &prefixed{head: p.read.Bytes(), left: p.read.Bytes(), err: p.err, rest: p.rest}
	if w.whole = p.err == io.EOF; w.whole {
		w.err = nil
	}
	return w
}
