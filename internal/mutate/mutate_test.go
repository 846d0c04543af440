package mutate

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var root = filepath.Join("..", "..")

// One of each fault, in the order of the source.
func TestOf(t *testing.T) {
	const src = `package p

const most = 3

func (b *Box[T]) F(n int, s []int) (int, error) {
	for i := 0; i < n; i++ {
		if n > 1 && b.ok { // what for
			b.n += min(n, 2)
			b.f(s)
			continue
		}
	}
	defer b.g()
	panic("no fault " + "here")
	return b.n, nil
}

func (b *Box) String() string { return "words" + b.name }
`
	all, err := Of("p/b.go", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range all {
		got = append(got, m.String())
		if bad := string(m.Source()); bad == src || len(bad) > len(src)+len("!()")+len("*new(int)") {
			t.Errorf("%v makes\n%s", &m, bad)
		}
	}
	for _, name := range got {
		for _, words := range []string{"words", "panic", "what for"} {
			if strings.Contains(name, words) {
				t.Errorf("words are mutated: %s", name)
			}
		}
	}
	for w := range strings.SplitSeq(`const: const most = 3 → const most = 4
const: const most = 3 → const most = 2
Box.F: for i := 0; i < n; i++ { → for i := 0; !(i < n); i++ {
Box.F: for i := 0; i < n; i++ { → for i := 0; i <= n; i++ {
Box.F: for i := 0; i < n; i++ { → for i := 1; i < n; i++ {
Box.F: for i := 0; i < n; i++ { → for i := 0; i < n; i-- {
Box.F: if n > 1 && b.ok { → if !(n > 1 && b.ok) {
Box.F: if n > 1 && b.ok { → if n > 1 || b.ok {
Box.F: if n > 1 && b.ok { → if n >= 1 && b.ok {
Box.F: if n > 1 && b.ok { → if n > 0 && b.ok {
Box.F: b.n += min(n, 2) → b.n -= min(n, 2)
Box.F: b.n += min(n, 2) → b.n += max(n, 2)
Box.F: b.n += min(n, 2) → (dropped)
Box.F: b.f(s) → (dropped)
Box.F: continue → (dropped)
Box.F: defer b.g() → (dropped)
Box.F: return b.n, nil → return *new(int), nil`, "\n") {
		if !slices.Contains(got, "p/b.go "+w) {
			t.Errorf("no %q in\n%s", w, strings.Join(got, "\n"))
		}
	}
}

// What is accepted is still there, with a reason.
func TestAccepted(t *testing.T) {
	accepted, err := Accepted()
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	share := 0
	for _, target := range Targets {
		share += target.Share
		all, err := Folder(root, target.Package)
		if err != nil || len(all) == 0 {
			t.Fatalf("%s: %d mutants, %v", target.Package, len(all), err)
		}
		for _, m := range all {
			if name := m.String(); there[name] {
				t.Errorf("two mutants are %s", name)
			} else {
				there[name] = true
			}
		}
	}
	for name := range accepted {
		if !there[name] {
			t.Errorf("equivalents.txt has what is no mutant any more: %s", name)
		}
	}
	if share < 950 || share > 1050 {
		t.Errorf("the shares of the targets are %d thousandths", share)
	}
}
