package yamlfile

import (
	"errors"
	"strings"
	"testing"
	"time"
)

type tree struct {
	Name     string
	Wait     time.Duration
	Children []tree
}

var leafFields = []Field{Key("name", Text, "what it is called")}

var treeFields = []Field{
	Key("name", Text, "what it is called"), Key("wait", Span, "how long"), Key("children", Structs(leafFields), "below it"),
}

func readTree(text string) (tree, error) {
	var t tree
	r := New("tree.yaml")
	root, err := r.Root(strings.NewReader(text), "tree", Keys(treeFields))
	if err == nil && root != nil {
		Mapping(r, root, "", treeFields, &t)
	}
	return t, errors.Join(err, r.Err())
}

func TestErrorsSayWhere(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"nmae: x\n", `tree.yaml:1:1: "nmae" is not known: want name, wait, children; did you mean name?`},
		{"wait: 5\n", `tree.yaml:1:7: wait: "5" is no time: want one such as 500ms, 30s, 1h30m or 2d`},
		{"name: é\nchildren:\n  - name: x\n  - {nam: y}\n", `tree.yaml:4:6: "nam" is not known in children: want name; did you mean name?`},
		{"name: {\n", "tree.yaml:1: no YAML: did not find expected node content"},
		{"wait: x\nname:\n", "tree.yaml:1:7: wait: \"x\" is no time: want one such as 500ms, 30s, 1h30m or 2d\ntree.yaml:2:6: name: nothing is no text"},
	} {
		if _, err := readTree(c.text); err == nil || err.Error() != c.want {
			t.Errorf("%q: got\n%v\nwant\n%s", c.text, err, c.want)
		}
	}
}

// References that multiply end at a bound, and are not read for an hour.
func TestReferencesAreBounded(t *testing.T) {
	text := "children: [" + strings.Repeat("{name: a}, ", 1000) + "]\n"
	if got, err := readTree(text); err != nil || len(got.Children) != 1000 {
		t.Fatalf("%d, %v", len(got.Children), err)
	}
	r := New("tree.yaml")
	root, err := r.Root(strings.NewReader("a: &a ["+strings.Repeat("{name: x},", 5000)+"]\nb: ["+strings.Repeat("*a,", 5000)+"]\n"), "tree", nil)
	if err != nil || root == nil {
		t.Fatal(err, r.Err())
	}
	read := 0
	for list := range Items(r, Member(root, "b"), "b") {
		for item := range Items(r, list, "a") {
			Mapping(r, item, "a", leafFields, new(tree))
			read++
		}
	}
	if read > mostValues || r.Err() == nil || !strings.Contains(r.Err().Error(), "references multiply") {
		t.Errorf("%d read, %v", read, r.Err())
	}
}

func TestErrorsAreBounded(t *testing.T) {
	_, err := readTree(strings.Repeat("a:\n", 50) + strings.Repeat("b: 1\n", 50_000))
	if lines := strings.Split(err.Error(), "\n"); len(lines) != mostErrors+1 || lines[mostErrors] != "tree.yaml: there are more errors than these" {
		t.Errorf("%d errors, the last %q", len(lines), lines[len(lines)-1])
	}
}
