package targets

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/paceline-go/paceline/internal/app/screen"
)

// WriteText writes a block per scenario and a line per figure, within 100 columns.
func (r *Result) WriteText(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s, seeds %d to %d: median and worst, and what they should be\n", r.Strategy, r.First, r.Last)
	for i := range r.Rows {
		row := &r.Rows[i]
		fmt.Fprintf(&text, "\n%s: %s\n", row.Scenario, row.Text)
		rows := screen.Table{Indent: "  "}
		for _, m := range row.Figures {
			rows.Row(m.Name, number(m.Median, "never")+" / "+number(m.Worst, "never"), m.aim(), m.verdict())
		}
		if err := rows.Write(&text, screen.TableWidth); err != nil {
			return err
		}
	}
	fmt.Fprintf(&text, "\n%d aims hold, %d are missed, %d are open", r.Held, len(r.Missed), len(r.Open))
	if r.Interrupted {
		fmt.Fprint(&text, " in what was finished")
	}
	fmt.Fprintf(&text, "; %.1f s\n", r.Wall)
	_, err := io.WriteString(w, text.String())
	return err
}

func (m *Measured) aim() string {
	if m.Holds == nil {
		return "no aim"
	}
	sign := "≤"
	if m.AtLeast {
		sign = "≥"
	}
	if m.AimWorst == nil {
		return sign + " " + number(m.AimMedian, "-")
	}
	return sign + " " + number(m.AimMedian, "-") + " / " + number(m.AimWorst, "-")
}

func (m *Measured) verdict() string {
	switch {
	case m.Holds == nil:
		return ""
	case *m.Holds:
		return "holds"
	case m.Open != "":
		return "open: " + m.Open
	}
	return "MISSED"
}

// number writes four digits.
func number(v *float64, ifNil string) string {
	if v == nil {
		return ifNil
	}
	digits := 3
	for limit := 1.0; digits > 0 && max(*v, -*v) >= limit; limit *= 10 {
		digits--
	}
	return strconv.FormatFloat(*v, 'f', digits, 64)
}
