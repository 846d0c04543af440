package nodesim_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/overlay"
)

const planting = `package p

const most = 3

func ready(n int) bool { return n < most && n >= 0 }

func goes(n int) (string, bool) {
	who, n := "one", n+1
	if ready(n) {
		return who, true
	}
	return "none", false
}
`

// A fault works in all functions that it edits, and faults that edit the same text stay apart.
func TestPlant(t *testing.T) {
	b := &overlay.Builder{Root: t.TempDir(), Work: t.TempDir(), Flags: os.Getenv("GOFLAGS")}
	source := strings.Replace(planting, "package p", "package main", 1) + `
func main() {
	println(goes(1))
	println(goes(2))
}
`
	for name, text := range map[string]string{"p.go": source, "go.mod": "module p\n\ngo 1.26\n"} {
		if err := os.WriteFile(filepath.Join(b.Root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build, err := plant(b, "", []planted{
		{name: "none goes", edits: []edit{{"p.go", "n < most", "false"}}},
		{name: "all go, as nobody", edits: []edit{
			{"p.go", "n < most && n >= 0", "n > 0"},
			{"p.go", `who, n := "one", n+1`, `who := "nobody"`},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(b.Work, "p.exe")
	if out, err := build.Compile(t.Context(), "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for number, want := range []string{
		"one true\nnone false\n", "none false\nnone false\n", "nobody true\nnobody true\n",
	} {
		c := exec.Command(program)
		c.Env = append(os.Environ(), overlay.AtWork(number))
		if out, err := c.CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("with fault %d at work: %v, %q, want %q", number, err, out, want)
		}
	}
}

// A text that is not there once, in a function, is named with its fault and file.
func TestPlantNothing(t *testing.T) {
	b := &overlay.Builder{Root: t.TempDir(), Work: t.TempDir()}
	if err := os.WriteFile(filepath.Join(b.Root, "p.go"), []byte(planting), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := plant(b, "", []planted{
		{name: "gone", edits: []edit{{"p.go", "n <= most", "true"}}},
		{name: "fine", edits: []edit{{"p.go", "n < most", "true"}}},
		{name: "twice", edits: []edit{{"p.go", "most", "2"}, {"p.go", "const most = 3", "const most = 4"}}},
	})
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	for want := range strings.SplitSeq(`gone: p.go has this 0 times, and not once:
n <= most
twice: p.go has this 2 times, and not once:
most
twice: p.go has this outside of functions:
const most = 3`, "\n") {
		if !strings.Contains("\n"+err.Error()+"\n", "\n"+want+"\n") {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
}
