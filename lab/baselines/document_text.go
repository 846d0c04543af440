package baselines

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/paceline-go/paceline/internal/text/table"
)

// WriteText writes the page for a terminal: a block per claim, and the tables.
func (p *Page) WriteText(w io.Writer) error {
	var b strings.Builder
	for i := range p.Documents {
		d := &p.Documents[i]
		fmt.Fprintf(&b, "%s\n%s\n", strings.ToUpper(d.Name), strings.Repeat("=", utf8.RuneCountInString(d.Name)))
		paragraph(&b, d.About)
		for _, c := range d.Claims {
			fmt.Fprintln(&b)
			fill(&b, "claim  ", c.Claim)
			fill(&b, "set-up ", c.Setup)
			fill(&b, "rerun  ", c.Rerun)
			fill(&b, "verdict", strings.ToUpper(string(c.Verdict))+". "+c.Why)
		}
		for _, t := range d.Tables {
			fmt.Fprintln(&b)
			t.text(&b)
		}
		fmt.Fprintln(&b)
	}
	fmt.Fprintf(&b, "%s; %d seeds\n", p.summary(), p.Seeds)
	_, err := io.WriteString(w, b.String())
	return err
}

// summary counts the verdicts.
func (p *Page) summary() string {
	n := map[Verdict]int{}
	all := 0
	for _, d := range p.Documents {
		for _, c := range d.Claims {
			n[c.Verdict]++
			all++
		}
	}
	return fmt.Sprintf("%d claims: %d confirmed, %d in part, %d refuted", all, n[Confirmed], n[InPart], n[Refuted])
}

// fill writes text behind a label, on as many lines as it takes.
func fill(b *strings.Builder, label, text string) {
	b.WriteString(table.Fit(label+"  "+strings.Join(strings.Fields(text), " "), table.Width) + "\n")
}

// paragraph writes text on as many lines as it takes.
func paragraph(b *strings.Builder, text string) {
	b.WriteString(table.Wrap(strings.Join(strings.Fields(text), " "), table.Width, "") + "\n")
}

// text writes the table. Its headings are too long to stand side by side, so they stand above it, by number.
func (t *Table) text(b *strings.Builder) {
	paragraph(b, t.Title)
	numbers := make([]string, len(t.Heading))
	for i, h := range t.Heading {
		numbers[i] = fmt.Sprintf("(%d)", i+1)
		fill(b, "  "+numbers[i], h)
	}
	rows := table.Table{Indent: "  "}
	rows.Head(numbers...)
	for _, row := range t.Rows {
		rows.Row(row...)
	}
	_ = rows.Write(b, table.Width) // a Builder has no errors
}

// Markdown is the page as docs/published.md has it.
func (p *Page) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Published systems: claims and reruns

Five documents describe how a client should keep to a rate limit. This page has each claim of theirs, with its figure. Beside it are
our rerun in the same set-up, a verdict, and the reason for the verdict. %[2]s.

The reruns are in virtual time and take seconds (`+"`paceline-lab sim published --seeds %[1]d`"+`). A test writes this page
(`+"`go test ./lab/cmd/paceline-lab -run PublishedPage -update`"+`), and another test checks it.

`, p.Seeds, p.summary())
	for i := range p.Documents {
		d := &p.Documents[i]
		fmt.Fprintf(&b, "## %s\n\n%s\n\n| claim | set-up | rerun | verdict | why |\n|---|---|---|---|---|\n",
			capital(d.Name), d.About)
		for _, c := range d.Claims {
			markdownRow(&b, []string{c.Claim, c.Setup, c.Rerun, "**" + string(c.Verdict) + "**", c.Why})
		}
		for _, t := range d.Tables {
			fmt.Fprintf(&b, "\n%s:\n\n", t.Title)
			markdownRow(&b, t.Heading)
			b.WriteString(strings.Repeat("|---", len(t.Heading)) + "|\n")
			for _, row := range t.Rows {
				markdownRow(&b, row)
			}
		}
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func markdownRow(b *strings.Builder, cells []string) {
	for _, c := range cells {
		b.WriteString("| " + strings.ReplaceAll(c, "|", `\|`) + " ")
	}
	b.WriteString("|\n")
}
