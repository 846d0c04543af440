//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	client "github.com/redis/go-redis/v9"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/share/postgres"
)

// grants is the block of docs/machines.md in a language.
func grants(t *testing.T, language string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/machines.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\n```"+language+"\n")
	block, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatalf("docs/machines.md has no block of %s", language)
	}
	return block
}

// An account with the grants of docs/machines.md can run, list and forget. An account that may read
// but not write is refused before the first request, by run and by the proxy, and may look. An
// account that may neither read nor make the table gets the missing grants in the error.
func TestGrants(t *testing.T) {
	t.Parallel()
	need.NotShort(t, "a database with four accounts; TestSharedRestart shares a limit in it")
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url := need.PostgreSQL(t).URL
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		do := func(sql string) {
			t.Helper()
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
		do("CREATE ROLE proxies LOGIN; CREATE ROLE reader LOGIN")
		as := func(role string) string { return strings.Replace(url, "paceline@", role+"@", 1) }
		refusesToSend(t, as("proxies"), "the table paceline_share is not there, and cannot be made: ")
		block := grants(t, "sql")
		if !strings.Contains(block, postgres.Schema+";") {
			t.Errorf("what docs/machines.md makes is not\n%s", postgres.Schema)
		}
		do(block)
		do("GRANT SELECT ON paceline_share TO reader")
		sendsAndForgets(t, as("proxies"))
		refusesToSend(t, as("reader"), "permission denied for table paceline_share")
		sharePrints(t, "ls", as("reader"))
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		url := need.Redis(t).URL
		o, err := client.ParseURL(url)
		if err != nil {
			t.Fatal(err)
		}
		c := client.NewClient(o)
		defer c.Close()
		do := func(line string) {
			t.Helper()
			var args []any
			for word := range strings.FieldsSeq(line) {
				args = append(args, word)
			}
			if err := c.Do(t.Context(), args...).Err(); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
		for line := range strings.Lines(grants(t, "redis")) {
			do(line)
		}
		do("ACL SETUSER reader on >secret ~paceline:* +@read +eval +evalsha +time +info -scan")
		as := func(user string) string { return strings.Replace(url, "//", "//"+user+":secret@", 1) }
		sendsAndForgets(t, as("proxies"))
		if denied, err := c.Do(t.Context(), "ACL", "LOG").Slice(); err != nil || len(denied) > 0 {
			t.Errorf("denied was %v, %v", denied, err)
		}
		refusesToSend(t, as("reader"), "can't run this command")
		refusesToSend(t, as("nobody"), "WRONGPASS")
	})
}

// sendsAndForgets has a run send something, and the limit listed and forgotten.
func sendsAndForgets(t *testing.T, address string) {
	t.Helper()
	s := serveStrictly(t, 20, time.Second)
	c, errs := process(t, "run", urlFile(t, s.URL, 1), "--out", filepath.Join(t.TempDir(), "out.jsonl"), "--limit", "20/s", "--share", address, "--share-name", "granted")
	if err := c.Wait(); err != nil {
		t.Errorf("%v\n%s", err, errs)
	}
	if served, refused := s.count(); served != 1 || refused > 0 {
		t.Errorf("%d served, %d refused", served, refused)
	}
	if text := sharePrints(t, "ls", address); !strings.Contains(text, "granted") {
		t.Errorf("share ls says\n%s", text)
	}
	sharePrints(t, "forget", address, "granted")
	for _, verb := range []string{"ls", "show"} {
		if text := sharePrints(t, verb, address); !strings.Contains(text, "there is no limit") {
			t.Errorf("share %s says\n%s", verb, text)
		}
	}
}

// refusesToSend has run and the proxy end at once, naming the store and saying why.
func refusesToSend(t *testing.T, address, why string) {
	t.Helper()
	s := serveStrictly(t, 20, time.Second)
	for _, verb := range []string{"run " + urlFile(t, s.URL, 1), "proxy --to " + s.URL + " --listen 127.0.0.1:0 --admin off"} {
		var errs strings.Builder
		ctx, cancel := context.WithTimeout(t.Context(), patient)
		code := execute(ctx, strings.Fields(fmt.Sprintf("%s --limit 20/s --share %s --share-name refused", verb, address)), strings.NewReader(""), io.Discard, &errs)
		cancel()
		if code != cli.ExitConfig || !strings.Contains(errs.String(), why) || strings.Contains(errs.String(), ":secret") {
			t.Errorf("%s at %s: exit %d\n%swant %d and %s", strings.Fields(verb)[0], redactedStore(address), code, errs.String(), cli.ExitConfig, why)
		}
	}
	if served, refused := s.count(); served+refused > 0 {
		t.Errorf("%d were sent", served+refused)
	}
}
