package text

import "testing"

// A size on a disk may be larger than a memory.
func TestParseDiskBytes(t *testing.T) {
	for text, want := range map[string]int64{"10GiB": 10 << 30, "500MB": 500_000_000, "9999999999": 9_999_999_999} {
		if n, err := ParseDiskBytes(text); err != nil || n != want {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
	for _, text := range []string{"", "0", "-1GiB", "10TB", "99999999999GiB"} {
		if n, err := ParseDiskBytes(text); err == nil {
			t.Errorf("%q is %d", text, n)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]struct {
		size int64
		back string
	}{"1": {1, "1"}, "64KiB": {64 << 10, "64KiB"}, "16MiB": {16 << 20, "16MiB"}, "1 kB": {1000, "1000"}, "1GiB": {1 << 30, "1GiB"}} {
		n, err := ParseBytes(text)
		if err != nil || n != want.size || Bytes(n) != want.back {
			t.Errorf("%q: %d, %s, %v", text, n, Bytes(n), err)
		}
	}
	for _, text := range []string{"", "0", "-1", "x", "1TB", "2GiB", "9999999999", "1.5MiB", "MiB"} {
		if n, err := ParseBytes(text); err == nil {
			t.Errorf("%q is %d", text, n)
		}
	}
}
