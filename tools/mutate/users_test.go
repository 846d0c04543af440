package mutate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// Users returns, by the folder of each package of the module, the folders of all whose tests are
// made with it, its own among them: the tests of others cannot find a mutant of it. Programs that
// tests have go build are made without mutants, so those find none.
//
// Folders that hold tests alone count. So a mutant of limit or fairshare that their own tests miss
// is judged by lab/laws, too.
func (b *Builder) Users(ctx context.Context) (map[string][]string, error) {
	list := func(args ...string) (string, error) {
		out, err := b.Go(ctx, append([]string{"list"}, args...)...).Output()
		if err != nil {
			return "", fmt.Errorf("mutate: go list %s: %w", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(out)), nil
	}
	module, err := list("-m")
	if err != nil {
		return nil, err
	}
	// Where there are tests, -test lists their program, too, which depends on all that they are made with.
	programs, err := list("-test", "-f",
		`{{if eq .Name "main"}}{{.ImportPath}}{{range .Deps}}{{"\t"}}{{.}}{{end}}{{end}}`, "./...")
	if err != nil {
		return nil, err
	}
	folder := func(path string) (name string, ok bool) {
		path, _, _ = strings.Cut(path, " ") // behind it stands for whose tests it is compiled
		name, ok = strings.CutPrefix(path, module)
		return cmp.Or(strings.TrimPrefix(name, "/"), "."), ok
	}
	users := map[string][]string{}
	for line := range strings.Lines(programs) {
		paths := strings.Split(strings.TrimSpace(line), "\t")
		path, ok := strings.CutSuffix(paths[0], ".test")
		if !ok {
			continue // a program that is no test
		}
		user, _ := folder(path)
		for _, d := range paths[1:] {
			if name, ok := folder(d); ok && !slices.Contains(users[name], user) {
				users[name] = append(users[name], user)
			}
		}
	}
	return users, nil
}
