package format

import (
	"errors"
	"io"
)

// First returns the first request of an input that begins with head; nil: none could be read. It is the first
// in the order of the input, whatever is wrong with lines before it.
func First(f Format, name string, head io.Reader, limits InputLimits) *Request {
	const most = 100 // lines that are no requests
	r := NewReader(f, name, head, limits)
	for range most {
		q, err := r.next()
		if err == nil {
			return q
		}
		if _, wrong := errors.AsType[*InputError](err); !wrong {
			return nil
		}
	}
	return nil
}
