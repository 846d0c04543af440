package soak

import (
	"bytes"
	"encoding/base64"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
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
