package proxybench

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A short run, of the program as it is: what it measures is not looked at, since that is the machine's, but that it was measured is.
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
		Rounds: 1, Requests: 20,
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
		ours: func(r Row) []*float64 {
			return []*float64{r.AddedP50, r.OverP50, r.OverCPU, r.ManyCPU, r.Rate, r.First, r.Event}
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
}

// A row that was not measured is a failure.
func TestFailed(t *testing.T) {
	if r := (&Report{Rows: []Row{{Name: plain}, {Name: ours}}}); r.Failed() != "" {
		t.Error(r.Failed())
	}
	if r := (&Report{Rows: []Row{{Name: plain}, {Name: ours, Error: "gone"}}}); r.Failed() != "paceline: gone" {
		t.Error(r.Failed())
	}
}

// A proxy that does not start is a row that says so.
func TestNoProgram(t *testing.T) {
	r, err := Run(t.Context(), Config{Paceline: "/no/such", Self: "/no/such", Rounds: 1, Requests: 1})
	if err != nil || len(r.Rows) != 3 || r.Rows[0].P50 == nil || r.Rows[1].Error == "" || r.Rows[1].AddedP50 != nil || r.Rows[2].Error == "" {
		t.Errorf("%+v, %v", r, err)
	}
}

// The table says what the JSON does, by headings, and fits a terminal.
func TestTable(t *testing.T) {
	v := func(f float64) *float64 { return &f }
	r := &Report{Rounds: 5, Rows: []Row{
		{Name: ours, AddedP50: v(123456), AddedP99: v(1234567), ManyCPU: v(12345.6), Rate: v(123456), First: v(1234.56), Event: v(123456)},
		{Name: direct, Rate: v(1)},
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
	for _, want := range []string{"123456", "1234567", "12345.6", "1234.56"} {
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
	good := Config{Rounds: 1, Requests: 1}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for _, bad := range []func(*Config){
		func(c *Config) { c.Rounds = 0 }, func(c *Config) { c.Requests = -1 },
	} {
		c := good
		if bad(&c); c.Check() == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}
