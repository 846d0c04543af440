package sanitize

import "io"

// LinesTo returns a writer that passes text through Lines, and on to w. Each write must consist of
// whole characters. It is as safe for concurrent use as w.
func LinesTo(w io.Writer) io.Writer {
	return filter{w, func(b []byte) []byte { return []byte(Lines(string(b))) }}
}

// JSONTo returns a writer like that of LinesTo, which passes what is written to it through JSON.
func JSONTo(w io.Writer) io.Writer { return filter{w, JSON} }

type filter struct {
	to     io.Writer
	change func([]byte) []byte
}

func (f filter) Write(b []byte) (int, error) {
	if n, err := f.to.Write(f.change(b)); err != nil {
		return min(n, len(b)), err
	}
	return len(b), nil
}
