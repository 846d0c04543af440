package screen

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	for _, c := range []struct {
		name string
		t    Table
		rows [][]string
		most int
		want string
	}{
		{"left", Table{}, [][]string{{"name", "n", "note"}, {"日本", "1", ""}, {}, {"a"}, {"longer", "10", "x"}}, 0,
			"name    n   note\n日本    1\n\na\nlonger  10  x\n"},
		{"right", Table{Right: true, Indent: "  "}, [][]string{{"in", "out", "model"}, {"1", "2000", "m"}}, 0,
			"  in   out  model\n   1  2000  m\n"},
		{"broken", Table{}, [][]string{{"name", "note"}, {"a", "one two three four five six"}}, 26,
			"name  note\na     one two three four\n      five six\n"},
		{"the widest is broken", Table{}, [][]string{{"cell", "note"}, {"one two three four", "one two three four five six"}}, 30,
			"cell            note\none two three   one two three\nfour            four five six\n"},
		{"no room", Table{}, [][]string{{"a long heading", "note"}, {"", "one two three four"}}, 10,
			"a long heading  note\n                one\n                two\n                three\n                four\n"},
		{"as much as there is room for", Table{}, [][]string{{"name", "note"}, {"a b", "one two three"}}, 19,
			"name  note\na b   one two three\n"},
		{"as wide as it gets", Table{}, [][]string{{"name", "note"}, {"a b", "one two three"}}, 0,
			"name  note\na b   one two three\n"},
		{"no room at all", Table{}, [][]string{{"n", "note"}, {"a b", "one two"}}, 1,
			"n  note\na  one\nb  two\n"},
		{"of the widest the last is broken", Table{}, [][]string{{"a", "b"}, {"one two", "six ten"}}, 15,
			"a        b\none two  six\n         ten\n"},
		// The word stands out, and the lines around it are as long as in a column that is wide
		// enough to be read.
		{"a long word at the end", Table{}, [][]string{{"a", "b"}, {"x", "read https://a.test/01234567890123456789012345678901234567 for all that there is to know of it"}}, 10,
			"a  b\nx  read\n   https://a.test/01234567890123456789012345678901234567\n   for all that there is to know of\n   it\n"},
		{"alone", Table{}, [][]string{{"b"}, {"https://a.test/01234567890123456789012345678901234567 for all that there is to know of it"}}, 10,
			"b\nhttps://a.test/01234567890123456789012345678901234567\nfor all that there is to know of\nit\n"},
		{"a long word, right", Table{Right: true}, [][]string{{"a", "b"}, {"x", "read https://a.test/01234567890123456789012345678901234567 for all that there is to know of it"}}, 10,
			"a  b\nx  read\n   https://a.test/01234567890123456789012345678901234567\n   for all that there is to know of it\n"},
	} {
		c.t.Head(c.rows[0]...)
		for _, row := range c.rows[1:] {
			c.t.Row(row...)
		}
		var b strings.Builder
		if err := c.t.Write(&b, c.most); err != nil || b.String() != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.name, err, b.String(), c.want)
		}
	}
}

// A table without rows is nothing, and what is broken at TableWidth fits the 100 columns that docs
// promise.
func TestTableFits(t *testing.T) {
	var b strings.Builder
	if err := new(Table).Write(&b, TableWidth); err != nil || b.Len() > 0 {
		t.Errorf("an empty table is %q, %v", b.String(), err)
	}
	var long Table
	long.Row("name", strings.Repeat("word ", 60))
	if err := long.Write(&b, TableWidth); err != nil {
		t.Fatal(err)
	}
	most := 0
	for line := range strings.SplitSeq(b.String(), "\n") {
		most = max(most, Width(line))
	}
	if most > 100 || most < 90 {
		t.Errorf("the longest line has %d columns:\n%s", most, b.String())
	}
}

// A text is broken at the last space that fits, anew in each line; a word at the beginning that is
// too long has none before it.
func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"one two three", 7, "one two\n  three"},
		{"one two three", 6, "one\n  two\n  three"},
		{"one two six ten", 7, "one two\n  six ten"},
		{"a longer", 4, "a\n  longer"},
		{"much-too-long a", 5, "much-too-long\n  a"},
		{" long", 4, " long"}, // a line with only a space has no use
		{"", 4, ""},
	} {
		if got := Wrap(c.text, c.most, "  "); got != c.want {
			t.Errorf("%q in %d columns is %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

// A continuation stands below the text after a label, or is indented by two columns. Lines that fit
// stay as they are.
func TestFitLines(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"one two three", 13, "one two three"},
		{"one two three", 8, "one two\n  three"},
		{"one two three", 7, "one two\n  three"},
		{"  one two three four", 9, "  one two\n    three\n    four"},
		{"label   one two three four", 15, "label   one two\n        three\n        four"},
		{"  a   one two\nthree four", 9, "  a   one\n      two\nthree\n  four"},
		{"one two three four five  six", 12, "one two\n  three four\n  five  six"}, // two spaces are no label so far on
		{"of twenty columns it  one two three", 33, "of twenty columns it  one two\n                      three"},
		{"and of one column more  one two three", 33, "and of one column more  one two\n  three"},
		{"日本 日本 日本", 9, "日本 日本\n  日本"},
		{"\x1b[31mred\x1b[0m and \x1b[32mgreen\x1b[0m", 13, "\x1b[31mred\x1b[0m and \x1b[32mgreen\x1b[0m"}, // colours take no columns
		{"label     one two", 14, "label     one\n         two"},                                           // a third of the columns is for what goes on
		{"much-too-long a", 5, "much-too-long\n  a"},
		{"", 5, ""},
	} {
		if got := Fit(c.text, c.most); got != c.want {
			t.Errorf("%q in %d columns is\n%s\nwant\n%s", c.text, c.most, got, c.want)
		}
	}
}

// No line is longer than was asked for, no word is lost, and one that is too long stays whole.
func FuzzWrap(f *testing.F) {
	f.Add("one two  three", 5)
	f.Add("日本 https://a.test/very/long", 7)
	f.Add(" ", 1)
	f.Fuzz(func(t *testing.T, text string, most int) {
		if most < 1 || strings.ContainsAny(text, "\n") {
			t.Skip()
		}
		got := Wrap(text, most, "")
		if strings.ReplaceAll(got, "\n", " ") != text {
			t.Errorf("%q becomes %q", text, got)
		}
		for line := range strings.SplitSeq(got, "\n") {
			if Width(line) > most && strings.Contains(strings.TrimLeft(line, " "), " ") && Width(strings.TrimRight(line, " ")) > most {
				t.Errorf("%q in %d columns has the line %q", text, most, line)
			}
		}
	})
}
