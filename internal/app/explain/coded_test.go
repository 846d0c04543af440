package explain_test

import (
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/explain"
	"github.com/paceline-go/paceline/internal/testkit/coded"
)

// What curl -i wrote into a file is read in each coding, also after a redirect.
func TestCodedAnswers(t *testing.T) {
	const body = `{"error":{"code":429,"message":"Please retry in 6s.","status":"RESOURCE_EXHAUSTED"}}`
	for _, c := range coded.All {
		for _, before := range []string{"", "HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n"} {
			text := before + "HTTP/2 429 \r\nContent-Type: application/json\r\nContent-Encoding: " + c.Field + "\r\n\r\n" + string(c.Encode([]byte(body)))
			if a, err := explain.Parse([]byte(text)); err != nil || a.Status != 429 || string(a.Body) != body {
				t.Errorf("%s: %d %q, %v", c.Name, a.Status, a.Body, err)
			}
		}
	}
	for _, text := range []string{"HTTP/1.1 429 Too Many\r\nContent-Encoding: gzip\r\n\r\n" + body, "HTTP/1.1 429 Too Many\nContent-Encoding: gzip\n\n" + body} { // as curl --compressed prints it
		if a, err := explain.Parse([]byte(text)); err != nil || !strings.Contains(string(a.Body), "retry in 6s") {
			t.Errorf("%q, %v", a.Body, err)
		}
	}
}
