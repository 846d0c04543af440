package postgres_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/backlog/backlogtest"
	"github.com/paceline-go/paceline/backlog/postgres"
	"github.com/paceline-go/paceline/internal/testkit/need"
)

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(t.Context()) })
	return c
}

// waiting returns the requests that a worker would get, with their data.
func waiting(t *testing.T, s backlog.Store, name string) string {
	t.Helper()
	i, err := s.Find(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	beat, err := s.Register(t.Context(), i.ID, "host", 1)
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.Turn(t.Context(), i.ID, &backlog.Turn{Worker: beat.Worker, Beat: beat.Beat, Claims: []backlog.Claim{{N: 100}, {N: 100, Lane: 3}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.GiveUp(t.Context(), backlog.Beat{Worker: beat.Worker, Beat: beat.Beat + 1}); err != nil {
		t.Fatal(err)
	}
	all := make([]string, len(o.Claimed))
	for i, c := range o.Claimed {
		all[i] = fmt.Sprintf("%s=%s/%d/%d", c.ID, c.Data, c.Lane, c.Deadline)
	}
	return strings.Join(all, " ")
}

// Requests are added with the user's own rows, or not at all: by EnqueueTx, and by SQL.
func TestTransactions(t *testing.T) {
	url := need.PostgreSQL(t).URL
	s := opener(url)(t)
	if _, err := backlog.Open(t.Context(), s, "mails", backlog.Options{}); err != nil {
		t.Fatal(err)
	}
	c := connect(t, url)
	if _, err := c.Exec(t.Context(), `CREATE TABLE orders (id text)`); err != nil {
		t.Fatal(err)
	}
	for _, commits := range []bool{false, true} {
		tx, err := c.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), `INSERT INTO orders VALUES ('1')`); err != nil {
			t.Fatal(err)
		}
		n, err := postgres.EnqueueTx(t.Context(), tx, "mails", backlog.Job{ID: "1", Data: []byte("a")}, backlog.Job{ID: "2"}, backlog.Job{ID: "1"})
		if err != nil || n != 2 {
			t.Fatalf("%d are added, %v", n, err)
		}
		var first, again *int64
		err = tx.QueryRow(t.Context(), `SELECT paceline_enqueue('mails', '3', '{"url":"x"}', lane => 3, deadline => to_timestamp(5)),
			paceline_enqueue('mails', '1', '\x00'::bytea)`).Scan(&first, &again)
		if err != nil || first == nil || again != nil {
			t.Fatalf("SQL: %v %v %v", first, again, err)
		}
		if got := waiting(t, s, "mails"); got != "" {
			t.Errorf("before the commit there is %s", got)
		}
		if commits {
			err = tx.Commit(t.Context())
		} else {
			err = tx.Rollback(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		if commits {
			want = `1=a/0/0 2=/0/0 3={"url":"x"}/3/5000`
		}
		if got := waiting(t, s, "mails"); got != want {
			t.Errorf("committed %v: there is %s, expected %s", commits, got, want)
		}
	}
	for query, says := range map[string]string{
		`SELECT paceline_enqueue('none', '1', 'x')`:                  "no backlog none",
		`SELECT paceline_enqueue('mails', '', 'x')`:                  "1 to 500 bytes",
		`SELECT paceline_enqueue('mails', 'x', 'x', 1000001)`:        "1000000",
		`SELECT paceline_enqueue('mails', repeat('x', 501), 'x', 1)`: "1 to 500 bytes",
	} {
		if _, err := c.Exec(t.Context(), query); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", query, err)
		}
	}
	tx, err := c.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := postgres.EnqueueTx(t.Context(), tx, "none", backlog.Job{ID: "1"}); !errors.Is(err, backlog.ErrNoBacklog) {
		t.Errorf("a backlog that is not there: %v", err)
	}
	if _, err := postgres.EnqueueTx(t.Context(), tx, "mails", backlog.Job{}); err == nil {
		t.Error("a request without an ID is added")
	}
}

// A program in another language adds a request with its own rows, in a transaction of its own: what it rolls back is
// not there.
func TestOtherLanguages(t *testing.T) {
	python := func(t *testing.T) []string {
		return []string{need.Python(t, "psycopg2"), "-c", `
import json, psycopg2, sys
db = psycopg2.connect(sys.argv[1])
db.set_client_encoding("UTF8")
for commits in False, True:
    with db.cursor() as c:
        c.execute("INSERT INTO orders VALUES (1)")
        for id, data in ("1", json.dumps({"to": "ä"}, ensure_ascii=False)), ("1", "again"), ("2", b"b"):
            c.execute("SELECT paceline_enqueue(%s, %s, %s, priority => 2)", ("mails", id, data))
            print(c.fetchone()[0] is not None)
    db.commit() if commits else db.rollback()
`}
	}
	node := func(t *testing.T) []string {
		const packages = "../../contrib/sdk/unchanged"
		program := need.Node(t, packages)
		modules, err := filepath.Abs(filepath.Join(packages, "node_modules", "pg"))
		if err != nil {
			t.Fatal(err)
		}
		return []string{program, "-e", fmt.Sprintf(`
const { Client } = require(%q);
(async () => {
  const db = new Client({ connectionString: process.argv[1] });
  await db.connect();
  for (const end of ["ROLLBACK", "COMMIT"]) {
    await db.query("BEGIN");
    await db.query("INSERT INTO orders VALUES (1)");
    for (const [id, data] of [["1", '{"to": "ä"}'], ["1", "again"], ["2", Buffer.from("b")]]) {
      const third = typeof data === "string" ? "$3" : "$3::bytea";
      const sql = "SELECT paceline_enqueue($1, $2, " + third + ", priority => 2) AS seq";
      const { rows } = await db.query(sql, ["mails", id, data]);
      console.log(rows[0].seq !== null ? "True" : "False");
    }
    await db.query(end);
  }
  await db.end();
})();
`, modules)}
	}
	for name, command := range map[string]func(*testing.T) []string{"Python": python, "Node": node} {
		t.Run(name, func(t *testing.T) {
			all := command(t)
			url := need.PostgreSQL(t).URL
			s := opener(url)(t)
			if _, err := backlog.Open(t.Context(), s, "mails", backlog.Options{}); err != nil {
				t.Fatal(err)
			}
			c := connect(t, url)
			if _, err := c.Exec(t.Context(), `CREATE TABLE orders (id int)`); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(all[0], append(all[1:], url)...).CombinedOutput()
			if want := strings.Repeat("True\nFalse\nTrue\n", 2); err != nil || string(out) != want {
				t.Fatalf("it prints %s%v", out, err)
			}
			if got, want := waiting(t, s, "mails"), `1={"to": "ä"}/0/0 2=b/0/0`; got != want {
				t.Errorf("there is %s, expected %s", got, want)
			}
			var orders int
			if err := c.QueryRow(t.Context(), `SELECT count(*) FROM orders`).Scan(&orders); err != nil || orders != 1 {
				t.Errorf("there are %d orders beside it, expected 1; %v", orders, err)
			}
		})
	}
}

// What cannot be used is said, without a password: tables of another version, no tables, no database.
func TestUnusable(t *testing.T) {
	url := need.PostgreSQL(t).URL
	if _, err := postgres.OpenExisting(t.Context(), url); !errors.Is(err, backlog.ErrNoStore) {
		t.Errorf("a database without tables: %v", err)
	}
	opener(url)(t)
	s, err := postgres.OpenExisting(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := connect(t, url).Exec(t.Context(), `UPDATE paceline_backlog_version SET version = 99`); err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.Open(t.Context(), url); !errors.Is(err, backlog.ErrVersion) || !strings.Contains(err.Error(), "99, expected 3") {
		t.Errorf("tables of another version: %v", err)
	}
	for _, url := range []string{"postgres://paceline:hunter2@127.0.0.1:1/x?sslmode=disable", "http://hunter2", "postgres://a:hunter2%@b"} {
		if _, err := postgres.Open(t.Context(), url); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// A role needs no more than docs/backlog.md grants, once the owner has made the tables.
func TestGrants(t *testing.T) {
	url := need.PostgreSQL(t).URL
	opener(url)(t)
	page, err := os.ReadFile("../../docs/backlog.md")
	if err != nil {
		t.Fatal(err)
	}
	_, grants, found := strings.Cut(string(page), "```sql\nGRANT")
	grants, _, _ = strings.Cut("GRANT"+grants, "```")
	if !found {
		t.Fatal("the page grants nothing")
	}
	c := connect(t, url)
	if _, err := c.Exec(t.Context(), `CREATE ROLE workers LOGIN; `+grants); err != nil {
		t.Fatal(err)
	}
	as := strings.Replace(url, "paceline@", "workers@", 1)
	for _, test := range backlogtest.Cases {
		if test.Name == "claims" || test.Name == "back" || test.Name == "again" || test.Name == "removes" || test.Name == "adds" {
			t.Run(test.Name, func(t *testing.T) { test.Check(t, opener(as)) })
		}
	}
	if _, err := connect(t, as).Exec(t.Context(), `SELECT paceline_enqueue(name, 'x', 'x') FROM paceline_backlog`); err != nil {
		t.Error(err)
	}
}
