package clitest

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/screen"
)

// ReadTable reads the tables of a text whose first heading is first. A row is a map of its cells,
// by their headings. A cell that goes on in the next line is joined.
func ReadTable(t *testing.T, text, first string) (rows []map[string]string) {
	t.Helper()
	var names []string
	var starts []int
	for line := range strings.SplitSeq(text, "\n") {
		runes := []rune(line)
		if strings.TrimSpace(line) == "" {
			names = nil
			continue
		}
		if strings.HasPrefix(strings.TrimSpace(line), first+"  ") {
			names, starts = nil, nil
			for i := range runes {
				if runes[i] != ' ' && (i == 0 || i > 1 && runes[i-1] == ' ' && runes[i-2] == ' ') {
					starts = append(starts, i)
				}
			}
			for i, at := range starts {
				end := len(runes)
				if i+1 < len(starts) {
					end = starts[i+1]
				}
				names = append(names, strings.TrimSpace(string(runes[at:end])))
			}
			continue
		}
		if names == nil {
			continue
		}
		row := map[string]string{}
		for i, at := range starts {
			end := len(runes)
			if i+1 < len(starts) {
				end = min(end, starts[i+1])
			}
			if at < end {
				if at > 0 && runes[at-1] != ' ' {
					t.Fatalf("what is below %q begins before it:\n%s", names[i], line)
				}
				row[names[i]] = strings.TrimSpace(string(runes[at:end]))
			}
		}
		if n := len(rows); n > 0 && row[names[1]] == "" || row[names[min(2, len(names)-1)]] == "" && n > 0 { // goes on
			for name, more := range row {
				rows[n-1][name] = strings.TrimSpace(rows[n-1][name] + " " + more)
			}
			continue
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		t.Fatalf("there is no table that begins with %q in\n%s", first, text)
	}
	return rows
}

// field is a value of decoded JSON, by a path such as wait_ms.p50.
func field(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		v = v.(map[string]any)[name]
	}
	return v
}

// Heading is a heading of a table. Its cells show a field of the JSON of the same run, times By if
// that is not 0.
type Heading struct {
	Name, Field string
	By          float64
}

// CompareTable checks that the rows of a table agree with the objects in the JSON of the same run.
func CompareTable(t *testing.T, rows []map[string]string, objects []any, headings []Heading) {
	t.Helper()
	if len(rows) != len(objects) {
		t.Fatalf("%d rows, and %d in the JSON: %v", len(rows), len(objects), rows)
	}
	for i, row := range rows {
		for _, h := range headings {
			cell, there := row[h.Name]
			if !there {
				t.Fatalf("row %d has nothing under %q: %v", i, h.Name, row)
			}
			switch want := field(objects[i], h.Field).(type) {
			case string:
				if cell != want {
					t.Errorf("row %d, %s: %q, in the JSON %q", i, h.Name, cell, want)
				}
			case float64:
				if h.By != 0 {
					want *= h.By
				}
				whole, _, _ := strings.Cut(cell, " ")
				_, digits, _ := strings.Cut(whole, ".")
				got, err := strconv.ParseFloat(whole, 64)
				off := 0.5001 * math.Pow10(-len(digits))
				if (cell != "-" && cell != "–" || want != 0) && (err != nil || math.Abs(got-want) > off) {
					t.Errorf("row %d, %s: %q, in the JSON %v", i, h.Name, cell, want)
				}
			case map[string]any: // of several seeds
				median, worst, _ := strings.Cut(cell, "/")
				_, digits, _ := strings.Cut(median, ".")
				text := func(v any) string {
					if v == nil {
						return "never"
					}
					return strconv.FormatFloat(v.(float64), 'f', len(digits), 64)
				}
				if median != text(want["median"]) || worst != text(want["worst"]) {
					t.Errorf("row %d, %s: %q, in the JSON %v", i, h.Name, cell, want)
				}
			default:
				t.Errorf("%s is %v in the JSON", h.Field, want)
			}
		}
	}
}

// Fits checks that a text has no line that is wider than tables may be.
func Fits(t *testing.T, text string) {
	t.Helper()
	for line := range strings.SplitSeq(text, "\n") {
		if n := screen.Width(line); n > screen.TableWidth {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}
