//go:build unix

package entries

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	patience = time.Minute            // for a program to do what it is to do
	rest     = 300 * time.Millisecond // for which counts stay as they are before they are taken
	plenty   = "10000/s"              // a limit that holds nothing up
)

func roundTrip(b *build) ([]row, error) { return second(b, "roundtrip") }

func wait(b *build) ([]row, error) { return second(b, "wait") }

// second counts from the driver's mark to its end.
func second(b *build, name string) ([]row, error) {
	p, err := b.start(drivePath, name)
	if err != nil {
		return nil, err
	}
	defer p.kill()
	if err := p.wait(); err != nil {
		return nil, err
	}
	all, marked, err := p.counts()
	return []row{{name, per(1, all, marked)}}, err
}

func run(b *build) ([]row, error) {
	const few, many = 5, 25
	server := newServer()
	defer server.Close()
	of := func(lines int) ([]uint64, error) {
		input := filepath.Join(b.dir, fmt.Sprintf("%d.txt", lines))
		if err := os.WriteFile(input, []byte(strings.Repeat(server.URL+"/\n", lines)), 0o600); err != nil {
			return nil, err
		}
		p, err := b.start("cmd/paceline", "run", "--limit", plenty, "--out", input+".results", input)
		if err != nil {
			return nil, err
		}
		defer p.kill()
		if err := p.wait(); err != nil {
			return nil, err
		}
		all, _, err := p.counts()
		return all, err
	}
	less, err := of(few)
	if err != nil {
		return nil, err
	}
	more, err := of(many)
	if err != nil {
		return nil, err
	}
	return []row{{"run", per(many-few, more, less)}}, nil
}

func proxy(b *build) ([]row, error) {
	const first, then = 3, 20
	server := newServer()
	defer server.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	listen := free.Addr().String()
	free.Close()
	p, err := b.start("cmd/paceline", "proxy", "--to", server.URL, "--limit", plenty, "--listen", listen, "--admin", "off")
	if err != nil {
		return nil, err
	}
	defer p.kill()
	_, _, err = p.atRest("it listens", func() (bool, error) {
		c, err := net.Dial("tcp", listen)
		if err != nil {
			return false, nil
		}
		return true, c.Close()
	})
	if err != nil {
		return nil, err
	}
	before, err := p.after(first, "http://"+listen)
	if err != nil {
		return nil, err
	}
	all, err := p.after(then, "http://"+listen)
	return []row{{"proxy", per(then, all, before)}}, err
}

// after returns the counts after n more requests to url, one after the other.
func (p *process) after(n int, url string) ([]uint64, error) {
	for range n {
		resp, err := http.Get(url)
		if err != nil {
			return nil, err
		}
		if _, err = io.Copy(io.Discard, resp.Body); err != nil {
			return nil, err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("the answer is %s, expected 200 OK", resp.Status)
		}
	}
	all, _, err := p.atRest("its counts rest", func() (bool, error) { return true, nil })
	return all, err
}

func start(b *build) ([]row, error) {
	input := filepath.Join(b.dir, "pipe")
	if err := syscall.Mkfifo(input, 0o600); err != nil {
		return nil, err
	}
	p, err := b.start("cmd/paceline", "run", "--limit", plenty, "--out", input+".results", input)
	if err != nil {
		return nil, err
	}
	defer p.kill()
	all, marked, err := p.atRest("it opens its input", func() (bool, error) {
		// A pipe without a reader is not opened for writing. With a writer its reader goes on, but the
		// counts are taken already.
		pipe, err := os.OpenFile(input, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if errors.Is(err, syscall.ENXIO) {
			return false, nil
		} else if err != nil {
			return false, err
		}
		return true, pipe.Close()
	})
	if err != nil {
		return nil, err
	}
	return []row{{"start, before main", per(1, marked, nil)}, {"start, main to input", per(1, all, marked)}}, nil
}

// per returns the n-th part of what is in counts and not in less.
func per(n float64, counts, less []uint64) []float64 {
	part := make([]float64, len(counts))
	for i, c := range counts {
		part[i] = float64(c) / n
		if less != nil {
			part[i] -= float64(less[i]) / n
		}
	}
	return part
}

func newServer() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "fine") }))
}

// process is a program that runs with counters.
type process struct {
	args   []string
	file   string // with its counters
	stop   func()
	ended  chan struct{}
	err    error        // to be read after ended
	output bytes.Buffer // to be read after ended
}

// start builds the command in a folder of the module, and starts it.
func (b *build) start(folder string, args ...string) (*process, error) {
	program, err := b.program(folder)
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(b.dir, "counts")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(file.Truncate(int64(2*8*len(b.functions))), file.Close()); err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(context.Background(), patience)
	p := &process{args: append([]string{folder}, args...), file: file.Name(), stop: stop, ended: make(chan struct{})}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = b.dir, &p.output, &p.output
	// A run would count what those before it have noted of themselves.
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PACELINE_") }),
		"ENTRIES_FILE="+p.file, "XDG_STATE_HOME="+file.Name()+".state")
	if err := cmd.Start(); err != nil {
		stop()
		return nil, err
	}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

func (p *process) kill() {
	p.stop()
	<-p.ended
}

// wait waits for the end. An exit code that is not 0 is an error.
func (p *process) wait() error {
	if <-p.ended; p.err != nil {
		return p.failed("")
	}
	return nil
}

func (p *process) failed(what string) error {
	return fmt.Errorf("%s%s: %v\n%s", strings.Join(p.args, " "), what, p.err, p.output.String())
}

// atRest returns the counts, and what they were at the mark, once they stay as they are for a while and ready is true
// after that. The end of the process before that is an error: what says what it was to do.
func (p *process) atRest(what string, ready func() (bool, error)) (now, marked []uint64, err error) {
	for {
		before, _, err := p.counts()
		if err != nil {
			return nil, nil, err
		}
		select {
		case <-p.ended:
			return nil, nil, p.failed(" ended before " + what)
		case <-time.After(rest):
		}
		if now, marked, err = p.counts(); err != nil {
			return nil, nil, err
		}
		if slices.Max(now) == 0 || !slices.Equal(before, now) {
			continue
		}
		if ok, err := ready(); ok || err != nil {
			return now, marked, err
		}
	}
}

// counts returns the counts now, and what they were at the mark.
func (p *process) counts() (now, marked []uint64, err error) {
	text, err := os.ReadFile(p.file)
	if err != nil {
		return nil, nil, err
	}
	all := make([]uint64, len(text)/8)
	if _, err := binary.Decode(text, binary.NativeEndian, all); err != nil {
		return nil, nil, err
	}
	half := len(all) / 2
	return all[:half], all[half:], nil
}
