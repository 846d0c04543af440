package screen

import (
	"cmp"
	"slices"
	"strings"
)

// Colours of a Part, as SGR parameters.
const (
	Green = "32"
	Red   = "31"
)

// Part is one statement of a Line.
type Part struct {
	// Forms are several ways to say it, the longest first. The second is the usual one; the others
	// after it are for narrow terminals.
	Forms []string
	// Rank says how much it matters: where there is not room for all parts, those with a lower Rank are shown.
	Rank int
	// Keep has it shown, at least in its shortest form, before any part without Keep is.
	Keep bool
	// Least, if not 0, allows the last form to be cut, to no fewer columns than this.
	Least int
	// Color is Green, Red or empty.
	Color string
}

// Line is one line to be shown: its parts in this order.
type Line []Part

const between = "  "

// Fit returns the line in at most so many columns; 0: in any number. Parts that matter least give
// way first. paint puts a text in a colour, which takes no columns.
func (l Line) Fit(most int, paint func(color, text string) string) string {
	f := fitting{line: l, said: make([]string, len(l)), most: most}
	f.fit()
	var texts []string
	for i, text := range f.said {
		switch {
		case text == "":
			continue
		case l[i].Color != "":
			text = paint(l[i].Color, text)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, between)
}

// fitting is a Line for which forms are being chosen.
type fitting struct {
	line Line
	said []string // the text chosen for each part; empty: none
	most int      // how many columns there are; 0: any number
}

func (f *fitting) fit() {
	ranked := make([]int, len(f.line)) // the part that matters most first
	for i := range ranked {
		ranked[i] = i
	}
	slices.SortStableFunc(ranked, func(a, b int) int { return cmp.Compare(f.line[a].Rank, f.line[b].Rank) })
	for n, i := range ranked {
		p := &f.line[i]
		if last := p.Forms[len(p.Forms)-1]; p.Keep && !f.say(i, last) && n == 0 {
			f.said[i] = Cut(last, f.most)
		}
	}
	for _, i := range ranked {
		p := &f.line[i]
		f.sayLongest(i, p.Forms[min(1, len(p.Forms)-1):])
		if f.said[i] == "" && p.Least > 0 {
			f.sayCut(i)
		}
	}
	for _, i := range ranked {
		f.sayLongest(i, f.line[i].Forms)
	}
}

// sayLongest chooses for a part the first of these forms for which there is room.
func (f *fitting) sayLongest(i int, forms []string) {
	for _, text := range forms {
		if f.say(i, text) {
			return
		}
	}
}

// sayCut chooses as much of a part's last form as there is room for, if that is at least Least columns.
func (f *fitting) sayCut(i int) {
	p := &f.line[i]
	last := p.Forms[len(p.Forms)-1]
	for n := Width(last); n >= p.Least; n-- {
		if f.say(i, Cut(last, n)) {
			return
		}
	}
}

// say chooses this text for a part. If there is no room for it, it returns false and the part keeps the text it had.
func (f *fitting) say(i int, text string) bool {
	was := f.said[i]
	f.said[i] = text
	n := 0
	for _, text := range f.said {
		if text != "" {
			n += len(between) + Width(text)
		}
	}
	if f.most > 0 && n-len(between) > f.most {
		f.said[i] = was
		return false
	}
	return true
}
