package programs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// TestParquetIsRead: the table that a run writes is read by a library that has no line of ours: each type of column, values that are
// absent, text of all alphabets, and more rows than a page has.
func TestParquetIsRead(t *testing.T) {
	node := need.Node(t, "../node")
	paceline, err := built()
	if err != nil {
		t.Fatal(err)
	}
	const rows = 5000
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var n int
		fmt.Sscan(q.URL.Query().Get("n"), &n)
		name := fmt.Sprintf(`"Größe %d 寸"`, n)
		if n%3 == 0 {
			name = "null"
		}
		fmt.Fprintf(w, `{"name":%s,"count":%d,"share":%d.5,"good":%t,"tags":{"n":[%d]}}`, name, int64(n)<<40, n, n%2 == 0, n)
	}))
	defer api.Close()
	dir := t.TempDir()
	var input strings.Builder
	for n := range rows {
		fmt.Fprintf(&input, `{"id":"r%d","url":"%s/?n=%d"}`+"\n", n, api.URL, n)
	}
	in, out := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "out.parquet")
	if err := os.WriteFile(in, []byte(input.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.Command(paceline, "run", in, "--limit", "1000000/s", "--out", out, "--progress", "off",
		"--select", "id=.id, name=.body.name, count=.body.count, share=.body.share, good=.body.good, tags=.body.tags")
	if text, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	text, err := output(time.Minute, nil, "../node", nil, node, "parquet.mjs", out)
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		ID, Count string
		Name      *string
		Share     float64
		Good      bool
		Tags      struct{ N []int }
	}
	var got struct {
		Columns []string
		Rows    []row
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%v: %.300s", err, text)
	}
	const columns = "id STRING OPTIONAL, name STRING OPTIONAL, count INTEGER OPTIONAL, share DOUBLE OPTIONAL, good BOOLEAN OPTIONAL, tags JSON OPTIONAL"
	if all := strings.Join(got.Columns, ", "); all != columns || len(got.Rows) != rows {
		t.Fatalf("%d rows of %s, want %d of %s", len(got.Rows), all, rows, columns)
	}
	seen := map[string]bool{}
	for _, r := range got.Rows {
		var n int
		fmt.Sscanf(r.ID, "r%d", &n)
		named := r.Name != nil && *r.Name == fmt.Sprintf("Größe %d 寸", n) || r.Name == nil && n%3 == 0
		if seen[r.ID] = true; !named || r.Count != fmt.Sprint(int64(n)<<40, "n") || r.Share != float64(n)+0.5 || r.Good != (n%2 == 0) ||
			len(r.Tags.N) != 1 || r.Tags.N[0] != n {
			t.Fatalf("a row is read as %+v", r)
		}
	}
	if len(seen) != rows {
		t.Errorf("%d ids, want %d", len(seen), rows)
	}
}
