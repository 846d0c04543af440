package shown

import "io"

// LinesTo returns a writer that has Lines of what is written to it written to w, and JSONTo one that has JSON. Who writes writes
// whole characters. They are as safe for concurrent use as w.
func LinesTo(w io.Writer) io.Writer {
	return filter{w, func(b []byte) []byte { return []byte(Lines(string(b))) }}
}

// JSONTo is described at LinesTo.
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
