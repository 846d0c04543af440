package bytesize

import "testing"

func TestParse(t *testing.T) {
	for text, want := range map[string]struct {
		size int64
		back string
	}{"1": {1, "1"}, "64KiB": {64 << 10, "64KiB"}, "16MiB": {16 << 20, "16MiB"}, "1 kB": {1000, "1000"}, "1GiB": {1 << 30, "1GiB"}} {
		n, err := Parse(text)
		if err != nil || n != want.size || String(n) != want.back {
			t.Errorf("%q: %d, %s, %v", text, n, String(n), err)
		}
	}
	for _, text := range []string{"", "0", "-1", "x", "1TB", "2GiB", "9999999999", "1.5MiB", "MiB"} {
		if n, err := Parse(text); err == nil {
			t.Errorf("%q is %d", text, n)
		}
	}
}
