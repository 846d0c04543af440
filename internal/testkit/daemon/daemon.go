// Package daemon starts server programs for tests: nginx, HAProxy, or a program of this module.
// Each server listens on a free port of the loopback interface, and has its files in a folder that
// the test gives it. On Linux the server ends with the test's process at the latest.
//
// A port that a test found free may be in use by another program a moment later, and HAProxy shares
// its port with any program that allows this. So on Linux, where all of 127.0.0.0/8 is loopback,
// package daemon gives each server an IP address of its own.
package daemon

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Config says what to run. In Args and Conf, DIR stands for Dir and ADDRESS for where to listen.
type Config struct {
	Program string // its path
	Args    []string
	Env     []string // beside ours
	// Conf is written to DIR/conf first. What the program prints goes to DIR/output.
	Conf string
	// Dir is an empty folder.
	Dir string
	// Up tells whether it serves. If nil, whether it accepts connections.
	Up func(address string) bool
}

// Daemon is a running program.
type Daemon struct {
	Address string // HOST:PORT where it listens
	Dir     string

	process *os.Process
	ended   chan struct{} // closed when the process is gone
}

const (
	startsWithin = 10 * time.Second
	stopsWithin  = 5 * time.Second
)

// Start runs a program until it serves. It must be stopped.
func Start(c Config) (*Daemon, error) {
	// Between the choice of a port and its use another program may take it.
	for try := 1; ; try++ {
		d, err := launch(&c)
		if err == nil {
			return d, nil
		}
		if try == 3 {
			return nil, fmt.Errorf("%s: %w", filepath.Base(c.Program), err)
		}
	}
}

func launch(c *Config) (*Daemon, error) {
	ln, err := net.Listen("tcp", loopback()+":0")
	if err != nil {
		return nil, err
	}
	address := ln.Addr().String()
	ln.Close()
	d := &Daemon{Address: address, Dir: c.Dir, ended: make(chan struct{})}
	fill := strings.NewReplacer("DIR", c.Dir, "ADDRESS", address)
	if c.Conf != "" {
		if err := os.WriteFile(filepath.Join(c.Dir, "conf"), []byte(fill.Replace(c.Conf)), 0o644); err != nil {
			return nil, err
		}
	}
	args := slices.Clone(c.Args)
	for i := range args {
		args[i] = fill.Replace(args[i])
	}
	if err := d.run(c, args); err != nil {
		return nil, err
	}
	up := c.Up
	if up == nil {
		up = accepts
	}
	for deadline := time.Now().Add(startsWithin); ; {
		serves := up(address)
		select {
		case <-d.ended: // whoever answers, it is another
			return nil, fmt.Errorf("it ended: %s", d.output())
		default:
		}
		if serves {
			return d, nil
		}
		time.Sleep(5 * time.Millisecond)
		if time.Now().After(deadline) {
			d.Stop()
			return nil, fmt.Errorf("it does not answer: %s", d.output())
		}
	}
}

func (d *Daemon) run(c *Config, args []string) error {
	output, err := os.Create(filepath.Join(d.Dir, "output"))
	if err != nil {
		return err
	}
	defer output.Close()
	cmd := exec.Command(c.Program, args...)
	cmd.Stdout, cmd.Stderr = output, output
	if c.Env != nil {
		cmd.Env = append(os.Environ(), c.Env...)
	}
	dieWithUs(cmd)
	started := make(chan error)
	go func() {
		// The system ends the process with the thread that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
			close(d.ended)
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	d.process = cmd.Process
	return nil
}

func accepts(address string) bool {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

func (d *Daemon) output() string {
	text, err := d.Read("output")
	if err != nil {
		return err.Error()
	}
	return text
}

// Read returns what a file of the folder holds.
func (d *Daemon) Read(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(d.Dir, name))
	return string(text), err
}

// PID is the process that was started.
func (d *Daemon) PID() int { return d.process.Pid }

// Stop ends it by SIGTERM, and by SIGKILL if it does not heed that. It may be called again.
func (d *Daemon) Stop() {
	_ = d.process.Signal(syscall.SIGTERM)
	select {
	case <-d.ended:
	case <-time.After(stopsWithin):
		_ = d.process.Kill()
		<-d.ended
	}
}
