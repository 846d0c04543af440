package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// Flags that a store takes the effect from are errors that name the flag for it, and a missing limit does not lead to limits that cannot be
// shared.
func TestWordsBesideAStore(t *testing.T) {
	dir := t.TempDir()
	store, urls := "sqlite:"+filepath.Join(dir, "limits.db"), write(t, "urls.txt", "http://127.0.0.1:1/\n")
	for _, c := range []struct {
		says string
		args []string
	}{
		{"expected --share-weight 3", []string{"exec", "--to", "http://127.0.0.1:1", "--limit", "20/s", "--share", store, "--weight", "3", "--", "true"}},
		{"expected --share-weight, such as 1000", []string{"exec", "--to", "http://127.0.0.1:1", "--limit", "20/s", "--share", store, "--head-start", "10s", "--", "true"}},
		{"--share needs a limit that is known", []string{"run", urls, "--share", store}},
	} {
		if _, errs := said(t, cli.ExitUsage, c.args...); !strings.Contains(errs, c.says) || strings.Contains(errs, "none") || strings.Contains(errs, "auto") {
			t.Errorf("%q says %s", c.args, errs)
		}
	}
}

// The verbs that look at a backlog take the STORE from the variable of --backlog, and a word without a colon is a NAME.
func TestBacklogOfTheVariable(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
	if _, errs := said(t, cli.ExitUsage, "backlog", "ls"); !strings.Contains(errs, "no STORE, expected sqlite:FILE or postgres://…, or one in PACELINE_BACKLOG") {
		t.Errorf("without a store: %s", errs)
	}
	t.Setenv("PACELINE_BACKLOG", store)
	said(t, cli.ExitOK, "enqueue", write(t, "good.jsonl", `{"id":"a","url":"http://127.0.0.1:1/"}`+"\n"), "--backlog-name", "mails")
	if out, _ := said(t, cli.ExitOK, "backlog", "ls"); !strings.Contains(out, "mails") {
		t.Errorf("backlog ls: %s", out)
	}
	if out, _ := said(t, cli.ExitOK, "backlog", "show", "mails"); !strings.Contains(out, "mails") {
		t.Errorf("backlog show: %s", out)
	}
	said(t, cli.ExitConfig, "backlog", "show") // there is none of the name default
	if out, _ := said(t, cli.ExitOK, "backlog", "show", store, "mails"); !strings.Contains(out, "mails") {
		t.Errorf("backlog show STORE NAME: %s", out)
	}
}

// A server without nonces suggests none, and one key is a key.
func TestServeWithoutNonces(t *testing.T) {
	text := greeted(t, "exchange", "--nonces=false", "--keys", "one", "--addr", ":0")
	if !strings.Contains(text, ": 1 key, ") || strings.Contains(text, "nonce=") {
		t.Errorf("it says %s", text)
	}
}
