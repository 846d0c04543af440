package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
	"unicode/utf8"
)

// Command is a command whose standard output is a token, in a form that readToken reads. The
// shell runs it (sh -c, on Windows cmd /c) without standard input. It has a process group of its
// own. When it is broken off, the whole group is killed.
type Command struct {
	Line string
	// Timeout bounds one run of it. If zero, a minute.
	Timeout time.Duration
}

const (
	defaultTimeout = time.Minute
	// lastWords is how many bytes of the end of the command's standard error an error shows.
	lastWords = 300
)

// String implements Issuer.
func (c Command) String() string { return "the command of --auth-command" }

// Secrets implements Issuer.
func (c Command) Secrets() map[string]string { return nil }

// Issue implements Issuer.
func (c Command) Issue(ctx context.Context) (Token, error) {
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	began := time.Now()
	out, words := &head{most: maxReply + 1}, &tail{most: lastWords}
	cmd := shell(ctx, c.Line)
	cmd.Stdout, cmd.Stderr = out, words
	cmd.WaitDelay = time.Second // child processes may keep its output open for ever
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // the command itself has ended well
	}
	switch {
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return Token{}, fmt.Errorf("it took longer than %v%s", c.Timeout, words)
	case err != nil:
		return Token{}, fmt.Errorf("%w%s", err, words)
	}
	t, err := readToken(out.b, began)
	if err != nil {
		return Token{}, fmt.Errorf("of its standard output: %w%s", err, words)
	}
	return t, nil
}

// head keeps the first bytes of its input. It is no bytes.Buffer, whose ReadFrom would keep all.
type head struct {
	b    []byte
	most int
}

func (h *head) Write(b []byte) (int, error) {
	h.b = append(h.b, b[:min(len(b), h.most-len(h.b))]...)
	return len(b), nil
}

// tail keeps the last bytes of its input.
type tail struct {
	b    []byte
	most int
}

func (t *tail) Write(b []byte) (int, error) {
	t.b = append(t.b, b...)
	t.b = t.b[max(len(t.b)-t.most, 0):]
	return len(b), nil
}

// String is a colon and the kept bytes on one line, or empty if nothing was written.
func (t *tail) String() string {
	b := t.b
	for len(b) > 0 && !utf8.RuneStart(b[0]) { // cut within a character
		b = b[1:]
	}
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(b), "�")), " ")
	if text == "" {
		return ""
	}
	if len(t.b) == t.most {
		text = "…" + text
	}
	return ": " + text
}
