//go:build unix

package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// readyIn is how long a keeper may take to start. It may have to wait for a store.
const readyIn = time.Minute

// ready is the first and only word of a keeper to the command that starts it.
type ready struct {
	Made
	// Error says why there is no keeper, and Code is the exit code for it.
	Error string `json:",omitempty"`
	Code  int    `json:",omitempty"`
}

// KeeperError is an error of the keeper, before the program was started. Its text was printed by
// nobody yet.
type KeeperError struct {
	Text string
	Code int
}

func (e *KeeperError) Error() string { return e.Text }

// Run starts the keeper by its command line, and becomes the program at path. It returns only if the
// program was not started: an error of the keeper, or an os.PathError of the program. Variables in
// hidden are the keeper's alone.
//
// The keeper gets its flags by Flags: others can read the arguments of a process, and flags may have
// secrets.
func Run(path string, program, keeper, hidden []string) error {
	const line = 4 // paceline exec --keeper PID; others can read it
	flags, err := json.Marshal(keeper[line:])
	if err != nil {
		return err
	}
	made, err := Start(Process{Line: keeper[:line], Env: append(os.Environ(), flagsOf+"="+string(flags)), Stderr: os.Stderr})
	if err != nil {
		return err
	}
	return Become(path, program, made, hidden)
}

// Become becomes the program, with the variables that lead it. It returns only after an error.
func Become(path string, program []string, made Made, hidden []string) error {
	env, err := Environment(os.Environ(), made, hidden)
	if err == nil && made.Socket != "" {
		path, program, env, err = captured(path, program, made, env)
	}
	if err != nil {
		return err
	}
	return &os.PathError{Op: "exec", Path: path, Err: syscall.Exec(path, program, env)} // the keeper sees this process end
}

// Process is a command of paceline that goes on without this process.
type Process struct {
	Line, Env []string
	Stderr    *os.File
}

// Start starts a process that is no child of this one, and waits until it is ready: a shell starts it
// and ends. A program that waits for all of its children would otherwise meet a stranger.
func Start(p Process) (Made, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return Made{}, err
	}
	defer r.Close()
	c := exec.Command("/bin/sh", append([]string{"-c", `"$@" >/dev/null &`, "sh"}, p.Line...)...)
	c.ExtraFiles, c.Stderr, c.Env = []*os.File{w}, p.Stderr, p.Env
	again := keepFiles()
	err = c.Run()
	again()
	w.Close()
	if err != nil {
		return Made{}, err
	}
	_ = r.SetReadDeadline(time.Now().Add(readyIn))
	b, err := io.ReadAll(r)
	var said ready
	switch {
	case err != nil:
		return Made{}, fmt.Errorf("the proxy does not start: %w", err)
	case len(b) == 0:
		return Made{}, errors.New("the proxy ended before it was ready")
	}
	if err := json.Unmarshal(b, &said); err != nil {
		return Made{}, err
	}
	if said.Error != "" {
		return Made{}, &KeeperError{said.Error, said.Code}
	}
	return said.Made, nil
}

// readyFile is the pipe to the command, as Start passes it.
const readyFile = 3

// flagsOf is the variable with the flags of a keeper, as JSON.
const flagsOf = "PACELINE_KEEPER_FLAGS"

// Flags returns the flags of this keeper.
func Flags() (all []string, err error) {
	err = json.Unmarshal([]byte(os.Getenv(flagsOf)), &all)
	return all, errors.Join(err, os.Unsetenv(flagsOf))
}

// Leave makes this process a keeper that no terminal reaches.
func Leave() { _, _ = syscall.Setsid() }

// LeaveAll is Leave for a process that outlasts its program: it holds no folder, and its files are its
// user's alone.
func LeaveAll() {
	Leave()
	_ = os.Chdir("/")
	syscall.Umask(0o077)
}

// Ready reports to the command that the program may begin.
func Ready(m Made) error { return report(ready{Made: m}) }

// Fail reports why there is no keeper.
func Fail(err error, code int) { _ = report(ready{Error: err.Error(), Code: code}) }

func report(said ready) error {
	f := os.NewFile(readyFile, "ready")
	b, err := json.Marshal(said)
	if err == nil {
		_, err = f.Write(b)
	}
	return errors.Join(err, f.Close())
}

// Ended returns when the program has ended, or ctx.
func Ended(ctx context.Context, pid int) { ended(ctx, pid) }
