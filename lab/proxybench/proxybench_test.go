package proxybench

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A short run, of the program as it is: what it measures is not looked at, since that is the machine's, but that it was measured is, and
// that nothing of ours is refused.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the programs")
	}
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir, "../../cmd/paceline", "../cmd/paceline-lab").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r, err := Run(t.Context(), Config{
		Paceline: filepath.Join(dir, "paceline"), Self: filepath.Join(dir, "paceline-lab"), Peer: []string{"bench", "proxy", "peer"},
		Only: []string{ours, plain}, Rounds: 1, Requests: 20, Waiting: 50, Strict: 2500 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]Row{}
	for _, row := range r.Rows {
		rows[row.Name] = row
	}
	for name, have := range map[string]func(Row) []*float64{
		direct: func(r Row) []*float64 { return []*float64{r.P50, r.P99, r.Rate, r.First, r.Event} },
		plain:  func(r Row) []*float64 { return []*float64{r.AddedP50, r.AddedP99, r.CPU, r.ManyCPU, r.Rate, r.First} },
		bare:   func(r Row) []*float64 { return []*float64{r.Memory, r.OfBare} },
		ours: func(r Row) []*float64 {
			return []*float64{r.AddedP50, r.OverP50, r.OverCPU, r.ManyCPU, r.Rate, r.First, r.Event, r.Memory, r.OfBare, r.Percent, r.Refused, r.Denied}
		},
	} {
		for i, v := range have(rows[name]) {
			if v == nil {
				t.Errorf("%s: figure %d is missing: %s", name, i, rows[name].Error)
			}
		}
		if rows[name].Error != "" {
			t.Errorf("%s: %s", name, rows[name].Error)
		}
	}
	if failed := r.Failed(); failed != "" {
		t.Error(failed)
	}
	if p := rows[ours].Percent; p != nil && *p < 50 {
		t.Errorf("%v %% of the ceiling", *p)
	}
}

// A refusal of ours is a failure, of another's is not.
func TestFailed(t *testing.T) {
	some := 3.0
	if r := (&Report{Rows: []Row{{Name: limitReq, Refused: &some}, {Name: ours, Refused: new(float64)}}}); r.Failed() != "" {
		t.Error(r.Failed())
	}
	if r := (&Report{Rows: []Row{{Name: ours, Refused: &some}}}); r.Failed() == "" {
		t.Error("nothing said")
	}
}

// The table says what the JSON does, by headings, and fits a terminal.
func TestTable(t *testing.T) {
	v := func(f float64) *float64 { return &f }
	r := &Report{Rounds: 5, Limit: 100, Waiting: 10000, Rows: []Row{
		{Name: ours, AddedP50: v(123456), AddedP99: v(1234567), ManyCPU: v(12345.6), Rate: v(123456), First: v(1234.56), Event: v(123456), Percent: v(100), Refused: v(123456), Denied: v(123456), Memory: v(12345), OfBare: v(12.34)},
		{Name: bare, Memory: v(40), OfBare: v(1)},
	}}
	var text, js bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if len([]rune(line)) > 101 {
			t.Errorf("wide: %q", line)
		}
	}
	for _, want := range []string{"123456", "1234567", "12345.6", "1234.56", "12345", "12.34", "100.0"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %s in\n%s", want, text.String())
		}
	}
	if err := json.NewEncoder(&js).Encode(r); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(js.Bytes(), &back); err != nil || *back.Rows[0].Rate != 123456 || back.Rows[1].P50 != nil {
		t.Errorf("%+v, %v", back, err)
	}
}

func TestCheck(t *testing.T) {
	good := Config{Rounds: 1, Requests: 1, Waiting: 1, Strict: 2 * time.Second}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for _, bad := range []func(*Config){
		func(c *Config) { c.Rounds = 0 }, func(c *Config) { c.Requests = -1 }, func(c *Config) { c.Waiting = 0 }, func(c *Config) { c.Strict = time.Second },
		func(c *Config) { c.Only = []string{ours, "squid"} },
	} {
		c := good
		if bad(&c); c.Check() == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

// The strict server refuses who asks for too much, so that a proxy that limits nothing is found out.
func TestStrictServerRefuses(t *testing.T) {
	up, err := newUpstream()
	if err != nil {
		t.Fatal(err)
	}
	defer up.close()
	if err := up.again(1); err != nil {
		t.Fatal(err)
	}
	answers, err := greedy(context.Background(), up.URL.Host, programs, 2*time.Second)
	served, refused, most, err2 := up.verdict(2 * time.Second)
	if err != nil || err2 != nil || refused == 0 || answers[200] > served || answers[429] > refused || most < Limit || most > 3*Limit {
		t.Errorf("%v, %v; %v; %d served, %d refused, %d at most", err, err2, answers, served, refused, most)
	}
	if cpu, memory, err := used(os.Getpid()); err != nil || cpu <= 0 || memory < 1<<20 {
		t.Errorf("%v, %d bytes, %v", cpu, memory, err)
	}
}
