// Package corpus loads the saved answers in package provider's testdata, for the tests of all
// packages that read answers.
//
// The file testdata/DIALECT/NAME.http of package provider is a saved response of the provider
// DIALECT. The first line of the file names the source. A source or a value may be called
// "constructed": it has the documented format, but no published example was found. If the response
// has no Date, the second line of the file has the instant at which the test reads the response.
package corpus

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/provider"
)

// Saved is a response, and when it is read.
type Saved struct {
	Name, Source string // Name is the path of its file
	Now          time.Time
	Response     provider.Response
}

// Load returns those of a dialect, in the order of their names. dir is quota's testdata.
func Load(t testing.TB, dir, dialect string) []Saved {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, dialect, "*.http"))
	if err != nil {
		t.Fatal(err)
	}
	var all []Saved
	for _, p := range paths {
		all = append(all, File(t, p))
	}
	return all
}

// File returns one of them.
func File(t testing.TB, path string) Saved {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := Saved{Name: path}
	for bytes.HasPrefix(data, []byte("# ")) {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		if v, ok := strings.CutPrefix(string(line), "# source: "); ok {
			s.Source = v
		}
		if v, ok := strings.CutPrefix(string(line), "# now: "); ok {
			if s.Now, err = time.Parse(time.RFC3339Nano, v); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		}
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(data)), nil)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	s.Response = provider.Response{Status: resp.StatusCode, Header: resp.Header, Body: body}
	if s.Now.IsZero() {
		if s.Now, err = http.ParseTime(resp.Header.Get("Date")); err != nil {
			t.Fatalf("%s: neither Date nor now: %v", path, err)
		}
	}
	return s
}
