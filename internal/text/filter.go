package text

import "io"

// SanitizeLinesTo returns a writer that passes text through SanitizeLines, and on to w. Each write must consist of
// whole characters. It is as safe for concurrent use as w.
func SanitizeLinesTo(w io.Writer) io.Writer {
	return filter{w, func(b []byte) []byte { return []byte(SanitizeLines(string(b))) }}
}

// SanitizeJSONTo returns a writer like that of SanitizeLinesTo, which passes what is written to it through SanitizeJSON.
func SanitizeJSONTo(w io.Writer) io.Writer { return filter{w, SanitizeJSON} }

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
