package transport_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/transport"
)

func TestModelInPathIsRenamed(t *testing.T) {
	for _, c := range []struct{ path, name, want string }{
		{"/openai/deployments/a/chat/completions", "b c", "/openai/deployments/b%20c/chat/completions"},
		{"/v1beta/models/a:generateContent", "b", "/v1beta/models/b:generateContent"},
		{"/v1beta/models/a%3AgenerateContent", "b/c", "/v1beta/models/b%2Fc%3AgenerateContent"},
		{"/model/arn%3Aaws%2Fx/converse", "b", "/model/b/converse"},
		{"/model/arn:aws%2Fx/converse", "b%", "/model/b%25/converse"},
	} {
		u, err := url.Parse("https://a.test" + c.path)
		if err != nil {
			t.Fatal(err)
		}
		transport.RenamePath(u, tokens.ModelOf(u), c.name)
		if got := u.EscapedPath(); got != c.want {
			t.Errorf("%s becomes %s, want %s", c.path, got, c.want)
		}
	}
}

// A path that names a model names the new one afterwards.
func FuzzModelInPath(f *testing.F) {
	f.Add("/openai/deployments/a/chat/completions", "b")
	f.Add("/v1/models/a%2Fb:generateContent", "c d")
	f.Add("/model/a%3Ab/converse", "x/y")
	f.Fuzz(func(t *testing.T, path, name string) {
		u, err := url.Parse("https://a.test/" + path)
		if err != nil || name == "" {
			return
		}
		model := tokens.ModelOf(u)
		if model == "" {
			return
		}
		transport.RenamePath(u, model, name)
		again, err := url.Parse(u.String())
		if err != nil || again.Path != u.Path {
			t.Fatalf("%q becomes %q: %v", path, u.String(), err)
		}
		plain := strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
		if got := tokens.ModelOf(u); plain && got != name {
			t.Fatalf("%q with %q named %q is %q, which names %q", path, model, name, u.String(), got)
		}
	})
}
