package format

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/secret"
)

// A cut body is kept up to its last whole character. A body that is no text is kept as bytes.
func TestBodyCutAnywhere(t *testing.T) {
	const text = "aé€😀-😀€éa"
	for n := range len(text) + 1 {
		want := strings.ToValidUTF8(text[:n], "")
		var r Result
		r.SetBody([]byte(text[:n]), true, secret.CutEnd, new(secret.Set))
		if r.Body == nil || *r.Body != want || !r.BodyCut || len(r.BodyBase64) > 0 {
			t.Errorf("cut after %d bytes: %s, expected %q", n, r.Append(nil), want)
		}
		r = Result{}
		r.SetBody([]byte(text[:n]), false, secret.Whole, new(secret.Set))
		if whole := want == text[:n]; r.BodyCut || (r.Body != nil) != whole || whole && *r.Body != want || !whole && string(r.BodyBase64) != text[:n] {
			t.Errorf("of %d bytes: %s", n, r.Append(nil))
		}
	}
	// Bytes before the cut that are no text are kept, except a possible beginning of a character.
	for body, want := range map[string]string{"\xff\xfe\x00": "\xff\xfe\x00", "a\x80b": "a\x80b", "\x80\x80\x80\x80": "\x80"} {
		var r Result
		r.SetBody([]byte(body), true, secret.CutEnd, new(secret.Set))
		if r.Body != nil || !bytes.Equal(r.BodyBase64, []byte(want)) {
			t.Errorf("%q: %s", body, r.Append(nil))
		}
	}
}

// The address of an API is absolute, and has nothing after its path.
func TestBaseURLs(t *testing.T) {
	for address, ok := range map[string]bool{
		"": true, "https://h.test": true, "http://h.test:8080/v1/": true, "https://[::1]/v1": true,
		"h.test": false, "ftp://h.test": false, "https://": false, "https://:80": false, "https://h.test/?a=1": false, "https://me@h.test": false, "https://h.test:x": false, "//h.test": false,
	} {
		_, err := NewLLM(LLMConfig{BaseURL: address})
		want := fmt.Sprintf("base URL %q, expected http:// or https://, a host and perhaps a path", secret.SanitizeAddress(address))
		if !strings.Contains(address, ":") || strings.HasPrefix(address, "//") {
			want = fmt.Sprintf("base URL %q: http:// or https:// is missing in front", address)
		}
		if (err == nil) != ok || err != nil && err.Error() != want {
			t.Errorf("%q: %v", address, err)
		}
	}
}
