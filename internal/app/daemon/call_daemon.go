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
	"os"
	"syscall"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// Base begins the URLs of requests by a client of Dial.
const Base = "http://paceline"

// patience is how long a daemon may take to say what it is.
const patience = 15 * time.Second

// ErrNone means that no daemon of this user runs.
var ErrNone = errors.New("no daemon of this user runs; expected: paceline daemon")

// VersionError means that the daemon is of another version.
type VersionError struct{ Daemon, Program string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the daemon of this user is paceline %s, and this is %s; expected the same: paceline daemon stop",
		e.Daemon, e.Program)
}

// Dial returns a client whose connections lead to the daemon, whatever the host of a URL. It returns
// ErrNone if there is none, and a *VersionError for one of another version.
func Dial(ctx context.Context) (*http.Client, error) { return DialWith(ctx, nil) }

// DialWith is Dial. The file goes with each connection, and TakeFile has it at the other end. It must
// stay open as long as the client is used.
func DialWith(ctx context.Context, f *os.File) (*http.Client, error) {
	c, place, err := connect(f)
	if err != nil {
		return nil, err
	}
	said, err := statusBy(ctx, c, place)
	if err == nil && said.Version != cli.Version() {
		err = &VersionError{said.Version, cli.Version()}
	}
	if err != nil {
		c.CloseIdleConnections()
		return nil, err
	}
	return c, nil
}

// Ask returns the Status of the daemon, of whatever version.
func Ask(ctx context.Context) (said Status, err error) {
	c, place, err := connect(nil)
	if err != nil {
		return said, err
	}
	defer c.CloseIdleConnections()
	return statusBy(ctx, c, place)
}

// End stops the daemon, of whatever version, and waits for its end. Without now, a daemon that serves
// something goes on, and the error says what.
func End(ctx context.Context, now bool) error {
	c, place, err := connect(nil)
	if err != nil {
		return err
	}
	defer c.CloseIdleConnections()
	url := Base + "/v1/daemon/stop"
	if now {
		url += "?now=1"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	a, err := c.Do(r)
	if err != nil {
		return reached(err, place)
	}
	defer a.Body.Close()
	if err := Refusal(a); err != nil {
		return err
	}
	for {
		c, err := dial(ctx, place)
		if err != nil {
			return ctx.Err()
		}
		c.Close()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retry):
		}
	}
}

func connect(f *os.File) (*http.Client, Place, error) {
	place, err := Find()
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := dial(ctx, place)
			if err != nil {
				return nil, err
			}
			if f == nil {
				return c.UnixConn, nil
			}
			return &sender{UnixConn: c.UnixConn, file: f}, nil
		},
	}}, place, err
}

// dial connects to the daemon, and checks whose it is.
func dial(ctx context.Context, place Place) (*conn, error) { return dialAt(ctx, place.Socket()) }

// dialAt connects to a process of this user at a socket.
func dialAt(ctx context.Context, path string) (*conn, error) {
	if _, err := owned(path); err != nil {
		return nil, err
	}
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	own, err := checked(c.(*net.UnixConn))
	if err != nil {
		c.Close()
		return nil, err
	}
	return own, nil
}

func statusBy(ctx context.Context, c *http.Client, place Place) (said Status, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the daemon at %s does not answer", place.Socket()))
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, Base+"/v1/daemon", nil)
	if err != nil {
		return said, err
	}
	a, err := c.Do(r)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return said, reached(err, place)
	}
	defer a.Body.Close()
	if err := Refusal(a); err != nil {
		return said, err
	}
	return said, json.NewDecoder(io.LimitReader(a.Body, longestBody)).Decode(&said)
}

// reached turns the error of a socket at which nobody listens into ErrNone.
func reached(err error, place Place) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return ErrNone
	}
	return fmt.Errorf("%s: %w", place.Socket(), err)
}

// RefusalError is a refusal of the daemon, in its words.
type RefusalError struct {
	Status int
	Text   string
}

func (e *RefusalError) Error() string { return e.Text }

// Refusal returns a *RefusalError if an answer is no success.
func Refusal(a *http.Response) error {
	if a.StatusCode/100 == 2 {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(a.Body, longestBody))
	if err != nil {
		return err
	}
	var said problem
	if json.Unmarshal(b, &said) != nil || said.Error == "" {
		said.Error = "the daemon answers " + a.Status
	}
	return &RefusalError{a.StatusCode, said.Error}
}
