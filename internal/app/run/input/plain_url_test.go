package input

import (
	"reflect"
	"testing"
)

// FuzzPlainURL: a plain URL is read as any other, and its text is that of the URL.
func FuzzPlainURL(f *testing.F) {
	for _, s := range []string{
		"https://127.0.0.1:45123/api/request?req_id=17", "http://a.test", "http://a.test/", "https://A.test?x=1", "http://a.test:80",
		"http://a.test:", "http://a.test:8x", "http://", "http:///x", "HTTP://a.test", "ftp://a.test", "http://a@b/c", "http://a/@b:c;d=e,f",
		"http://a/b?", "http://a/b?c?d", "http://a/b#c", "http://a/b?c#d", "http://a/b?c d", "http://a/b%20c", "http://a/b?c=%zz",
		"http://a/b c", "http://a//b", "http://a/b\x7f", "http://a/b?\x7f", "http://[::1]/", "http://a_b/", "http://a/b?c=é", "http://a/[b]",
		"http://a/b?://c", "http://-/", "http://./", "http://a:1:2/", "http://a/!*'()", "http://a/b?\"<>", "http://a\n/", "",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u := PlainURL(text)
		if u == nil {
			return
		}
		want, reason := parseURL(text, true)
		if reason != "" || !reflect.DeepEqual(u, want) || u.String() != text {
			t.Fatalf("%q: %#v, want %#v %s", text, u, want, reason)
		}
	})
}

// Inputs whose lines are plain are read without url.Parse.
func TestPlainURLs(t *testing.T) {
	for text, plain := range map[string]bool{
		"https://127.0.0.1:45123/api/request?req_id=17": true, "http://a.test": true, "http://a.test/b?c=%20&d=https://e/": true,
		"http://a.test/b?": false, "http://a.test/%20": false, "http://a.test/#b": false, "http://u:p@a.test/": false, "http://é.test/": false,
	} {
		if got := PlainURL(text) != nil; got != plain {
			t.Errorf("%q: plain %v", text, got)
		}
	}
}
