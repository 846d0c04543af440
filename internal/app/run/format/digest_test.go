package format

import (
	"strconv"
	"testing"
)

// Digests in earlier results stay valid: quoted is strconv's, with less work where there is nothing
// to escape.
func TestQuotedIsAsStrconvHasIt(t *testing.T) {
	for c := range 256 {
		s := "a" + string([]byte{byte(c)}) + "b"
		if got := string(quoted([]byte("x"), s)); got != "x"+strconv.Quote(s) {
			t.Errorf("%q, want %q", got, "x"+strconv.Quote(s))
		}
	}
}
