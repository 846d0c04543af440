//go:build unix

package main

import (
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// writtenIn bounds the wait for the figures of a run's end. The keeper gives the last answers 2 s of it.
const writtenIn = 5 * time.Second

// awaited runs the same command line in a child, which becomes the program. It returns when the figures of the
// run's end are written, since another process, the keeper, writes them after the program's end.
func (x *execFlags) awaited(cmd *cobra.Command, self string, args []string) error {
	before, _ := os.Stat(x.summary)
	child := exec.Command(self, slices.Concat([]string{"exec", "--awaited"}, given(cmd.Flags()), []string{"--"}, args)...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, passed...)
	defer signal.Stop(signals)
	state, err := runChild(child, signals, nil, nil)
	if err != nil {
		return cli.Exit(notExecutable, err)
	}
	isWritten := func() bool { // the keeper puts another file in the place
		now, err := os.Stat(x.summary)
		return err == nil && (before == nil || !os.SameFile(before, now))
	}
	for deadline := time.Now().Add(writtenIn); !isWritten() && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	code := state.ExitCode()
	if status := state.Sys().(syscall.WaitStatus); status.Signaled() {
		code = bySignal + int(status.Signal())
	}
	return endAs(state, code)
}
