package mutate

import (
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/race"
)

var root = filepath.Join("..", "..")

// One of each fault, in the order of the source.
func TestOf(t *testing.T) {
	const src = `package p

const most, few = 30, 3

func (b *Box[T]) F(n int, s []int) (int, error) {
	for i := 0; i < n; i++ {
		if n > 1 && b.ok { // what for
			b.n += min(n, 2)
			b.f(s)
			continue
		}
	}
	if n > 9 {
		n = 9
	}
	wait(3 * time.Second)
	s = make([]int, n, 2*n)
	s = slices.Grow(s, 5)
	if s == nil {
		return 7, errors.New("no fault")
	}
	if n, err := b.h(); err != nil {
		return 40, err
	}
	defer b.g()
	panic("no fault " + "here")
	return b.n, nil
}

func g() (Box[int], any) { return Box[int]{}, Box[int]{} }

func (b *Box) String() string { return "words" + b.name }
`
	all, err := Of("p/b.go", []byte(src), nil)
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
		for _, spared := range []string{"words", "panic", "what for", "n >= 9", "n > 10", "n > 8", "2 * time", "4 * time", "n, 3*n", "Grow(s, 6)", "return 8", "return *new(int), errors", "return 41, err", "return 39, err", "→ return *new(int), err", "*new(Box[int])"} {
			if strings.Contains(name, spared) {
				t.Errorf("it is not to be mutated: %s", name)
			}
		}
	}
	for w := range strings.SplitSeq(`const: const most, few = 30, 3 → const most, few = 60, 3
const: const most, few = 30, 3 → const most, few = 15, 3
const: const most, few = 30, 3 → const most, few = 30, 4
const: const most, few = 30, 3 → const most, few = 30, 2
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
Box.F: if n > 9 { → if !(n > 9) {
Box.F: n = 9 → n = 10
Box.F: wait(3 * time.Second) → wait(6 * time.Second)
Box.F: wait(3 * time.Second) → wait(1 * time.Second)
Box.F: return 7, errors.New("no fault") → return 7, *new(error)
Box.F: defer b.g() → (dropped)
Box.F: return 40, err → return 40, *new(error)
Box.F: return b.n, nil → return *new(int), nil
g: func g() (Box[int], any) { return Box[int]{}, Box[int]{} } → func g() (Box[int], any) { return Box[int]{}, *new(any) }`, "\n") {
		if !slices.Contains(got, "p/b.go "+w) {
			t.Errorf("no %q in\n%s", w, strings.Join(got, "\n"))
		}
	}
}

// A diff without context names the lines that it adds, of files that changed, moved or are new.
func TestReadDiff(t *testing.T) {
	got := readDiff("diff --git a/p/a.go b/p/a.go\n--- a/p/a.go\n+++ b/p/a.go\n@@ -1,2 +1 @@ func f() {\n-a\n-b\n+c\n@@ -9 +8,0 @@\n-d\n" +
		"@@ -11,0 +11,2 @@\n+e\n+f\ndiff --git a/gone.go b/gone.go\n--- a/gone.go\n+++ /dev/null\n@@ -1 +0,0 @@\n-g\n" +
		"diff --git a/old.go b/new.go\nsimilarity index 90%\nrename from old.go\nrename to new.go\n--- a/old.go\n+++ b/new.go\n@@ -3 +3 @@\n-h\n+i\n")
	want := lines{"p/a.go": {1: true, 11: true, 12: true}, "new.go": {3: true}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// What is accepted is still there, with a reason.
func TestAccepted(t *testing.T) {
	race.Without(t) // nothing runs beside it
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
	for _, f := range accepted.Families {
		matches := func(name string) bool { return f.MatchString(name) }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(there)), matches) {
			t.Errorf("equivalents.txt has a family of none: %s", f)
		}
	}
	for name := range accepted.Names {
		if !there[name] {
			t.Errorf("equivalents.txt has what is no mutant any more: %s", name)
		}
	}
	if share < 950 || share > 1050 {
		t.Errorf("the shares of the targets are %d thousandths", share)
	}
}
