//go:build unix

package keeper

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/paceline-go/paceline/internal/app/capture"
	"github.com/paceline-go/paceline/internal/app/forward"
	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/launch"
	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/text"
)

// days is how long a program can be served: its certificates are made at its start.
const days = 60

// Run is one program and its children.
type Run struct {
	// Program is its name, and PID its process.
	Program string
	PID     int
	// Upstreams are the servers that it calls, checked. Settings is equal for two runs if all is
	// that was said of these servers.
	Upstreams []proxy.Upstream
	Settings  string
	// Client has its weight, its head start, and its longest wait.
	Client proxy.Client
	// Getenv has the program's environment. Log gets what concerns the program.
	Getenv func(string) string
	// Temp is its temporary folder, for the run's files.
	Temp string
	// Sent is the file that gets a line of each attempt: see journal.SentLog. If empty, none.
	Sent string
	// Capture leads all of its connections here, and not its environment. Local are the ports of this
	// machine that it then reaches.
	Capture bool
	Local   []uint16
	Log     *slog.Logger

	client proxy.Client // Client, with a name and a key
	key    string
	made   launch.Made
	door   *proxy.Doorway

	captured func() // ends the capture; nil: there is none
}

// Made is what the program needs, after Join.
func (r *Run) Made() launch.Made { return r.made }

func (r *Run) begin(number int) (err error) {
	r.key = rand.Text()
	r.client = r.Client
	r.client.Name = fmt.Sprintf("%s (process %d, run %d)", text.Sanitize(r.Program), r.PID, number)
	r.client.Keys = []proxy.KeyHash{proxy.HashKey(r.key)}
	if r.Sent == "" {
		return nil
	}
	r.client.Sent, err = journal.OpenSentLog(r.Sent, r.Log)
	return err
}

// open opens the entrance to the program alone: by a token, which is in the program's environment.
func (r *Run) open(s *proxy.Server) (err error) {
	if r.made.Folder, err = launch.NewFolder(r.Temp); err != nil {
		return err
	}
	r.made.Bundle = filepath.Join(r.made.Folder.Public, "ca.pem")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	r.made.URL = (&url.URL{Scheme: "http", User: url.UserPassword("paceline", r.key), Host: l.Addr().String()}).String()
	var named []*url.URL
	for i := range r.Upstreams {
		named = append(named, r.Upstreams[i].To)
	}
	r.door, err = s.ForwardBeside(proxy.Forwarding{
		Listener: l, Bundle: r.made.Bundle, Getenv: r.Getenv, Tunnels: forward.AnyTunnels, Days: days,
		Admits:    func(q *http.Request) bool { return hasToken(q, r.key) || ownJava(q) },
		Upstreams: named, Key: r.key, Log: r.Log,
	})
	if err != nil {
		l.Close()
		return err
	}
	if r.Capture {
		return r.openSocket(named)
	}
	return r.openNamed(named)
}

// openSocket waits for the listeners of the program's namespace.
func (r *Run) openSocket(named []*url.URL) error {
	r.made.Socket, r.made.Local = filepath.Join(r.made.Folder.Private, "capture"), r.Local
	here := map[string]string{} // named ports of this machine, and the hosts as they are named
	for _, u := range named {
		host := forward.CanonicalHost(u.Hostname())
		if a, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !a.IsLoopback()) {
			continue
		}
		for _, port := range portsOf(u) {
			n, err := strconv.ParseUint(port, 10, 16)
			if err != nil {
				return err
			}
			r.made.Local, here[port] = append(r.made.Local, uint16(n)), host
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: r.made.Socket, Net: "unix"})
	if err != nil {
		return fmt.Errorf("the socket of a captured program: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	r.captured = func() { cancel(); <-ended }
	go func() {
		defer close(ended)
		err := capture.Serve(ctx, l, capture.Config{
			Named: func(host string) bool {
				return slices.ContainsFunc(named, func(u *url.URL) bool { return forward.CanonicalHost(u.Hostname()) == forward.CanonicalHost(host) })
			},
			Take: func(c net.Conn, host, port string) {
				if a, err := netip.ParseAddr(host); err == nil && a.IsLoopback() && here[port] != "" {
					host = here[port]
				}
				r.door.Captured(c, host, port)
			},
		})
		if err != nil {
			r.Log.Warn("a program is not captured", "err", err)
		}
	}()
	return nil
}

// openNamed opens a port for each named host, at which connections begin without CONNECT.
func (r *Run) openNamed(named []*url.URL) error {
	r.made.Named = map[string]int{}
	for _, u := range named {
		for _, port := range portsOf(u) {
			at := net.JoinHostPort(forward.CanonicalHost(u.Hostname()), port)
			if r.made.Named[at] != 0 {
				continue
			}
			origin, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			r.made.Named[at] = origin.Addr().(*net.TCPAddr).Port
			r.door.ServeOrigin(origin, u.Hostname(), port)
		}
	}
	return nil
}

// forget removes the files.
func (r *Run) forget() {
	if r.made.Folder != nil {
		_ = r.made.Folder.Remove() // the next run removes what is left
		r.made.Folder = nil
	}
}

// close closes the ports at once, and breaks off at the end of ctx what is still under way.
func (r *Run) close(ctx context.Context) {
	r.forget()
	defer r.client.Sent.Close()
	if r.captured != nil {
		r.captured()
	}
	if r.door == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lastAnswers)
	defer cancel()
	r.door.Close(ctx)
}

// lastAnswers is how long requests may still be answered after the program has ended.
const lastAnswers = 2 * time.Second
