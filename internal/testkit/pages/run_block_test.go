package pages

import (
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// What a block has started in the background ends with it, also if one of its lines fails. Otherwise it would hold the
// output of the check.
func TestNothingIsLeft(t *testing.T) {
	reads, held, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reads.Close()
	block := Block{Text: "sleep 1000 &\nfalse\n"}
	c := exec.Command(need.Program(t, "bash"), "-c", block.script([len(ports)]string{}))
	c.ExtraFiles = []*os.File{held} // which sleep inherits
	if err := c.Run(); err == nil {
		t.Error("a block with a line that fails ends with success")
	}
	held.Close()
	if err := reads.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := reads.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("a process of the block is still there: %v", err)
	}
}
