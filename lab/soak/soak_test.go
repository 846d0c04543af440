package soak

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Some seconds of it, with the program as it is: no promise is broken, and all doors are used.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the program")
	}
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "paceline")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/paceline").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r, err := Run(context.Background(), Config{Paceline: program, For: 5 * time.Second, Seed: 2, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if failed := r.Failed(); failed != "" {
		var table strings.Builder
		_ = r.WriteText(&table)
		t.Errorf("%s\n%s", failed, table.String())
	}
}

// The server notices a client without patience, and one that ignores the limit.
func TestStrangerNotices(t *testing.T) {
	s := newStranger(1)
	server := httptest.NewServer(s)
	defer server.Close()
	d, err := s.open("key")
	if err != nil {
		t.Fatal(err)
	}
	ask := func() {
		req, err := http.NewRequest(http.MethodPost, server.URL, strings.NewReader(`{"id":"a"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer key")
		if resp, err := http.DefaultTransport.RoundTrip(req); err == nil { // some answers are cut
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	}
	for range 3 * perSecond {
		ask()
	}
	c, _ := s.countsOf(d)
	if c.Over == 0 && c.Said == 0 {
		t.Errorf("%+v: nothing above the limit", c)
	}
	s.mu.Lock()
	d.form, d.said, d.until = refusals[0], time.Now().Add(-2*crossing), time.Now().Add(time.Minute)
	d.read[""] = d.said
	s.mu.Unlock()
	ask()
	if c, examples := s.countsOf(d); c.Early != 1 || len(examples) == 0 {
		t.Errorf("%+v, %q: it came early", c, examples)
	}
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

// Requests without an end when a session ends leave the next session as many as the first had.
func TestSessionsAreGivenRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStranger(1)
		door, err := s.open("key")
		if err != nil {
			t.Fatal(err)
		}
		k, d := &soak{server: s}, &driver{door: door, ended: map[string]bool{}}
		for session := range 3 {
			ctx, end := context.WithTimeout(context.Background(), time.Second)
			given := 0
			for ok := true; ok; {
				if _, ok = k.next(ctx, d); ok {
					given++
				}
			}
			end()
			if given != ahead {
				t.Errorf("session %d is given %d requests", session, given)
			}
			k.drop(d)
		}
	})
}
