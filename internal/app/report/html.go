package report

import (
	"encoding/json"
	"fmt"
	"html"
	"strings"
)

// page writes a page as HTML. It is no template: a program with one keeps every exported method of every
// type that it uses, and was a quarter larger.
type page struct{ strings.Builder }

// put writes a format. Texts among the arguments are escaped; a markup is not.
func (p *page) put(format string, args ...any) {
	for i, a := range args {
		if text, ok := a.(string); ok {
			args[i] = html.EscapeString(text)
		}
	}
	fmt.Fprintf(p, format, args...)
}

// markup is text of ours.
type markup string

// write returns the whole of it: page.html with its places filled in.
func (p *page) write(of *Page, views []view, charts []data) (string, error) {
	if of.Text != "" {
		p.put("\n<section class=\"verdict\"><h2>%s</h2></section>", of.Text)
	}
	if len(of.Figures) > 0 {
		p.put("\n<section class=\"card figures\">\n<table><caption>Figures</caption><tbody>")
		for _, f := range of.Figures {
			p.put("\n<tr><th scope=\"row\">%s</th><td>%s</td></tr>", f.Name, f.Value)
		}
		p.put("\n</tbody></table>\n</section>")
	}
	if len(views) > 0 {
		p.put("\n<section class=\"charts\" aria-label=\"Charts\">")
		for i := range views {
			p.chart(&views[i])
		}
		p.put("\n</section>")
	}
	values, err := json.Marshal(charts) // which escapes what could end the script
	c := common()
	return strings.NewReplacer("{{.ScriptHash}}", c.scriptHash, "{{.StyleHash}}", c.styleHash, "{{.Style}}", c.style,
		"{{.Title}}", html.EscapeString(of.Title), "{{.Main}}", p.String(), "{{.Data}}", string(values),
		"{{.Script}}", c.script).Replace(pageText), err
}

// chart writes a chart: bars are a table with a drawing in each row; of lines the script draws what the table has.
func (p *page) chart(v *view) {
	p.put("\n<figure class=\"chart\" id=\"chart-%d\">\n<figcaption>%s", v.ID, v.Title)
	if len(v.Bars) > 0 {
		p.put("</figcaption>\n<table class=\"bars\">")
		p.row("thead", v.Head, "", `<th scope="col"><span class="unseen">as bars</span></th>`)
		p.put("\n<tbody>")
		for i := range v.Bars {
			p.bar(&v.Bars[i])
		}
		p.put("\n</tbody></table>")
	} else {
		p.put(" <span class=\"sub\">%s</span></figcaption>\n<div class=\"drawing\"></div>", v.Measure())
	}
	if v.Caption != "" {
		p.put("\n<p>%s</p>", v.Caption)
	}
	if len(v.Bars) == 0 {
		p.put("\n<details><summary>As a table</summary>\n<div class=\"scroll\" role=\"region\" aria-label=\"%s, as a table\" "+
			"tabindex=\"0\">\n<table>", v.Title)
		p.row("thead", v.Head, ` class="n"`, "")
		p.put("\n<tbody>")
		for _, row := range v.Rows {
			p.row("", row, ` class="n"`, "")
		}
		p.put("\n</tbody></table>\n</div>\n</details>")
	}
	p.put("\n</figure>")
}

// row writes a row of headings, in the element of that name, or of cells behind a heading; the others have the class.
func (p *page) row(headings string, cells []string, class, last markup) {
	first, other := "th scope=\"row\"", "td"
	if headings != "" {
		first, other = "th scope=\"col\"", "th scope=\"col\""
		p.put("\n<%s>", markup(headings))
	} else {
		p.put("\n")
	}
	p.put("<tr>")
	for i, cell := range cells {
		if i == 0 {
			p.put("<%s>%s</th>", markup(first), cell)
		} else {
			p.put("<%s%s>%s</%s>", markup(other), class, cell, markup(other[:2]))
		}
	}
	p.put("%s</tr>", last)
	if headings != "" {
		p.put("</%s>", markup(headings))
	}
}

func (p *page) bar(b *barView) {
	class := ""
	if b.Strong {
		class = ` class="strong"`
	}
	p.put("\n<tr%s>", markup(class))
	for i, cell := range b.Cells {
		p.put([]string{`<th scope="row">%s</th>`, `<td>%s</td>`}[min(i, 1)], cell)
	}
	p.put(`<td><svg aria-hidden="true"><rect width="%v%%" height="14"/>`, b.Value)
	if b.Whisker {
		p.put(`<line x1="%[1]v%%" x2="%[2]v%%" y1="7" y2="7"/><line x1="%[1]v%%" x2="%[1]v%%" y1="3" y2="11"/>`+
			`<line x1="%[2]v%%" x2="%[2]v%%" y1="3" y2="11"/>`, b.Low, b.High)
	}
	p.put("</svg></td></tr>")
}
