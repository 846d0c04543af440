package soak

import (
	"bytes"
	"encoding/base64"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// forms are the forms of a key that are searched for: the middle of it, which no escape changes,
// and base64 of that at each of the three alignments.
func forms(key string) (all [][]byte) {
	core := strings.TrimSuffix(strings.TrimPrefix(key, "sk-soak/"), "+=")
	all = append(all, []byte(core), []byte(url.QueryEscape(core)))
	for skip := range 3 {
		text := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", skip) + core))
		all = append(all, []byte(text[4:len(text)-4])) // the ends depend on what stands beside it
	}
	return all
}

// leaks counts the files below dir with a key in them, and names the first.
func leaks(dir string, keys []string) (n int, first string, err error) {
	var wanted [][]byte
	for _, key := range keys {
		wanted = append(wanted, forms(key)...)
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, w := range wanted {
			if bytes.Contains(text, w) {
				if n++; first == "" {
					first, _ = filepath.Rel(dir, path)
				}
				return nil
			}
		}
		return nil
	})
	return n, first, err
}

// A key is found in each form in which programs write it.
func TestLeaks(t *testing.T) {
	key := newKey()
	texts := []string{"it is " + key, strings.ReplaceAll(key, "/", `\/`), url.QueryEscape(key)}
	for _, before := range []string{"Bearer ", "Basic x:", "user:"} {
		texts = append(texts, base64.StdEncoding.EncodeToString([]byte(before+key)))
	}
	for _, text := range texts {
		found := false
		for _, f := range forms(key) {
			found = found || strings.Contains(text, string(f))
		}
		if !found {
			t.Errorf("%s is not found", text)
		}
	}
}
