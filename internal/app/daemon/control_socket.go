//go:build unix

package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// controlled ends the names of the sockets at which programs are controlled, as in 4711.ctl.
const controlled = ".ctl"

// controlPatience is how long a program may take to answer. One that is suspended answers nothing.
const controlPatience = 3 * time.Second

// Control is the socket at which this user changes the settings of a program that runs. Serve makes it.
type Control struct {
	path   string
	server *http.Server
}

// Controlled opens the socket of this process, and serves p there until Close. Only processes of this
// user are answered.
func Controlled(p Controllable) (*Control, error) {
	in, err := controlFolder()
	if err != nil {
		return nil, err
	}
	c := &Control{path: filepath.Join(in, strconv.Itoa(os.Getpid())+controlled)}
	for n := 2; isThere(c.path); n++ { // of an earlier process with this number, or of another part of this one
		if gone, _ := dialAt(context.Background(), c.path); gone == nil {
			_ = os.Remove(c.path)
			break
		} else {
			gone.Close()
		}
		c.path = filepath.Join(in, fmt.Sprintf("%d-%d%s", os.Getpid(), n, controlled))
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: c.path})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(c.path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/control", func(w http.ResponseWriter, _ *http.Request) {
		Answer(w, http.StatusOK, p.State())
	})
	mux.HandleFunc("POST /v1/control", func(w http.ResponseWriter, r *http.Request) { turned(w, r, p) })
	c.server = &http.Server{Handler: http.MaxBytesHandler(mux, longestBody), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = c.server.Serve(listener{l}) }()
	return c, nil
}

// isThere reports whether there is a file of that name.
func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func turned(w http.ResponseWriter, r *http.Request, p Controllable) {
	var t Turn
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		Refuse(w, http.StatusBadRequest, "this is no change: %v; expected the same version of paceline", err)
		return
	}
	said, err := p.Turn(t)
	if err != nil {
		Refuse(w, http.StatusUnprocessableEntity, "%v", err)
		return
	}
	Answer(w, http.StatusOK, said)
}

// Close removes the socket. A nil Control has none.
func (c *Control) Close() {
	if c != nil {
		c.server.Close() // the listener removes the file
	}
}

// Program is a program of this user that can be controlled.
type Program struct {
	PID    string // of the process, and a number if it has several
	State  json.RawMessage
	client *http.Client
}

// Programs returns the programs of this user that run and answer, in the order of their numbers. silent are the
// numbers of those that do not answer.
func Programs(ctx context.Context) (all []Program, silent []string, err error) {
	in, err := controlFolder()
	if err != nil {
		return nil, nil, err
	}
	files, err := os.ReadDir(in)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range files {
		pid, is := strings.CutSuffix(f.Name(), controlled)
		if !is {
			continue
		}
		path := filepath.Join(in, f.Name())
		p := Program{PID: pid, client: &http.Client{Timeout: controlPatience, Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dialAt(ctx, path) }}}}
		err := p.do(ctx, http.MethodGet, nil, &p.State)
		switch {
		case errors.Is(err, syscall.ECONNREFUSED): // it was killed
			_ = os.Remove(path)
		case errors.Is(err, os.ErrNotExist), errors.Is(err, io.EOF): // it has just ended
		case err != nil:
			silent = append(silent, pid)
		default:
			all = append(all, p)
		}
	}
	// The folder has those of the same length in order.
	slices.SortStableFunc(all, func(a, b Program) int { return len(a.PID) - len(b.PID) })
	return all, silent, nil
}

// Turn makes a change, and returns what the program says of it, or a *RefusalError.
func (p *Program) Turn(ctx context.Context, t Turn) (said string, err error) {
	return said, p.do(ctx, http.MethodPost, t, &said)
}

func (p *Program) do(ctx context.Context, method string, body, answer any) error {
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		in = strings.NewReader(string(b))
	}
	defer p.client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, method, Base+"/v1/control", in)
	if err != nil {
		return err
	}
	a, err := p.client.Do(r)
	if failed, is := errors.AsType[*url.Error](err); is {
		return failed.Err
	}
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if err := Refusal(a); err != nil {
		return err
	}
	return json.NewDecoder(io.LimitReader(a.Body, longestState)).Decode(answer)
}

// longestState bounds what is read of a program.
const longestState = 16 << 20
