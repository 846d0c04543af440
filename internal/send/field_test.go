package send

import "testing"

func TestIsFieldName(t *testing.T) {
	for s, want := range map[string]bool{"Host": true, "x-a_b.c!": true, "": false, "a b": false, "a:": false, "ä": false, "a\t": false, "a\x7f": false, "(a)": false} {
		if got := IsFieldName(s); got != want {
			t.Errorf("IsFieldName(%q) = %v", s, got)
		}
	}
}

func TestIsFieldValue(t *testing.T) {
	for s, want := range map[string]bool{"": true, "a b\tc": true, "ä": true, "a\nb": false, "a\r": false, "\x00": false, "\x7f": false} {
		if got := IsFieldValue(s); got != want {
			t.Errorf("IsFieldValue(%q) = %v", s, got)
		}
	}
}

// Only the bytes beyond ASCII are escaped: what the caller has escaped or not stays as it is.
func TestASCIIQuery(t *testing.T) {
	for raw, want := range map[string]string{
		"": "", "q=a+b%20c&d": "q=a+b%20c&d", "q=\u00fc+%20&\u20ac": "q=%C3%BC+%20&%E2%82%AC", "\xff=\x7f\x80": "%FF=\x7f%80",
	} {
		if got := ASCIIQuery(raw); got != want {
			t.Errorf("ASCIIQuery(%q) = %q, want %q", raw, got, want)
		}
	}
}

func TestSetQuery(t *testing.T) {
	for _, c := range []struct {
		raw  string
		set  []Param
		want string
	}{
		{"a=%2f&b", nil, "a=%2f&b"}, {"", []Param{{"k", "v"}}, "k=v"}, {"a=%2f&k=1&%6b=2&b", []Param{{"k", "x y&z"}}, "a=%2f&b&k=x+y%26z"},
		{"&&%zz=1", []Param{{"k", ""}}, "%zz=1&k="},
	} {
		if got := SetQuery(c.raw, c.set); got != c.want {
			t.Errorf("SetQuery(%q, %v) = %q, expected %q", c.raw, c.set, got, c.want)
		}
	}
}
