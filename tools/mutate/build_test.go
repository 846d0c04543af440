package mutate

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strconv"

	"github.com/paceline-go/paceline/internal/testkit/overlay"
)

// Builder builds tests of a module. Its methods are safe for concurrent use.
type Builder struct{ overlay.Builder }

// NewBuilder returns one for the module with that root, and with a folder for its own files.
func NewBuilder(root, work string) *Builder { return &Builder{overlay.Builder{Root: root, Work: work}} }

// Alone tells whether the mutant cannot be built with others: what is outside of functions has no copies.
func (m *Mutant) Alone() bool { return m.in == nil }

// Together builds with all these mutants, each at work where the environment says its number, from
// 1 on in the order in which they were given. It returns which do not compile, too.
func (b *Builder) Together(ctx context.Context, mutants []*Mutant) (*overlay.Build, map[*Mutant]bool, error) {
	stillborn := map[*Mutant]bool{}
	for { // there may be one more package that compiles now
		files, where := map[string][]byte{}, map[string]map[int]int{}
		packages := map[string]bool{}
		byFile := map[string][]int{}
		for i, m := range mutants {
			if !stillborn[m] {
				byFile[m.File] = append(byFile[m.File], i+1)
			}
		}
		for file, numbers := range byFile {
			some := make([]*Mutant, len(numbers))
			for i, n := range numbers {
				some[i] = mutants[n-1]
			}
			files[file], where[file] = together(numbers, some)
			chosen, text := some[0].in.Chosen(file)
			files[chosen] = text
			packages["./"+path.Dir(file)] = true
		}
		build, err := b.With(files)
		if err != nil {
			return nil, nil, err
		}
		args := []string{"-gcflags=-e"}
		for p := range packages {
			args = append(args, p)
		}
		out, err := build.Compile(ctx, args...).CombinedOutput()
		if err == nil {
			return build, stillborn, nil
		}
		if n := blame(build, string(out), where, mutants, stillborn); n == 0 {
			return nil, nil, fmt.Errorf("mutate: %w\n%s", err, out)
		}
	}
}

// together returns a file with all these mutants of it, by the numbers at which they work, and the
// lines at which their copies begin.
func together(numbers []int, mutants []*Mutant) (src []byte, lines map[int]int) {
	changes := make([]overlay.Change, len(mutants))
	for i, m := range mutants {
		changes[i] = overlay.Change{Number: numbers[i], In: m.in, From: m.from, To: m.to, Text: m.text}
	}
	return overlay.Together(mutants[0].src, changes)
}

// By builds with one mutant, which is always at work.
func (b *Builder) By(ctx context.Context, m *Mutant) (build *overlay.Build, stillborn bool, err error) {
	if build, err = b.With(map[string][]byte{m.File: m.Source()}); err != nil {
		return nil, false, err
	}
	out, err := build.Compile(ctx, "./"+m.Package()).CombinedOutput()
	if err != nil && !compileError.Match(out) {
		return nil, false, fmt.Errorf("mutate: %w\n%s", err, out)
	}
	return build, err != nil, nil
}

var compileError = regexp.MustCompile(`(?m)^\S*?([^/\\\s]+\.go):(\d+):\d+: `)

// blame notes whose copies the compiler complains of, and returns how many are new.
func blame(b *overlay.Build, out string, where map[string]map[int]int, mutants []*Mutant,
	stillborn map[*Mutant]bool) (n int) {
	for _, e := range compileError.FindAllStringSubmatch(out, -1) {
		line, _ := strconv.Atoi(e[2])
		number, begins := 0, 0
		for k, l := range where[b.Name(e[1])] {
			if l <= line && l > begins {
				number, begins = k, l
			}
		}
		if number > 0 && !stillborn[mutants[number-1]] {
			stillborn[mutants[number-1]] = true
			n++
		}
	}
	return n
}
