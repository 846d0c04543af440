package run

import (
	"errors"
	"testing"

	"github.com/paceline-go/paceline/internal/app/durable"
	"github.com/paceline-go/paceline/internal/app/run/output"
)

// half takes half of the first write, as a full disk does, and all later writes.
type half struct{ got []byte }

func (h *half) Write(b []byte) (int, error) {
	if h.got == nil {
		h.got = append(h.got, b[:len(b)/2]...)
		return len(b) / 2, errors.New("full")
	}
	h.got = append(h.got, b...)
	return len(b), nil
}

// A stream takes nothing back. The part that a failed write left there is not written again.
func TestStreamIsNotWrittenTwice(t *testing.T) {
	var out half
	w := endings{writer: &writer{c: &Config{}}, to: &output.Results{File: durable.Stream("standard output", &out)}, lines: []byte("{1}\n{2}\n")}
	w.of = []ended{{from: 0, to: 4}, {from: 4, to: 8}}
	if err := w.results(); err == nil || string(out.got) != "{1}\n" || w.of[1].written {
		t.Errorf("%q, %+v, %v", out.got, w.of, err)
	}
}
