package overlay

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const law = `package p

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
	b := &Builder{Root: t.TempDir(), Work: t.TempDir(), Flags: os.Getenv("GOFLAGS")}
	source := strings.Replace(law, "package p", "package main", 1) + `
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
	build, err := b.Plant([]Fault{
		{"none goes", []Edit{{"p.go", "n < most", "false"}}},
		{"all go, as nobody", []Edit{
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
		c.Env = append(os.Environ(), AtWork(number))
		if out, err := c.CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("with fault %d at work: %v, %q, want %q", number, err, out, want)
		}
	}
}

// A text that is not there once, in a function, is named with its fault and file.
func TestPlantNothing(t *testing.T) {
	b := &Builder{Root: t.TempDir(), Work: t.TempDir()}
	if err := os.WriteFile(filepath.Join(b.Root, "p.go"), []byte(law), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := b.Plant([]Fault{
		{"gone", []Edit{{"p.go", "n <= most", "true"}}},
		{"fine", []Edit{{"p.go", "n < most", "true"}}},
		{"twice", []Edit{{"p.go", "most", "2"}, {"p.go", "const most = 3", "const most = 4"}}},
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
