//go:build unix

package main

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/forward"
	"github.com/paceline-go/paceline/internal/app/launch"
	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/text/sanitize"
	"github.com/paceline-go/paceline/observe"
)

const (
	// keeperDays is how long a program can be served.
	keeperDays = 60
	// lastAnswers is how long requests may still be answered after the program has ended.
	lastAnswers = 2 * time.Second
)

// keep is the proxy of a run, in a process of its own.
func (x *execFlags) keep(cmd *cobra.Command) error {
	launch.Leave()
	flags, err := launch.Flags()
	if err == nil {
		err = cmd.Flags().Parse(flags)
	}
	k := &keeper{}
	if err == nil {
		err = x.open(cmd, k)
	}
	if err != nil {
		k.close()
		launch.Fail(err, cli.Code(err))
		return cli.Exit(cli.Code(err), nil)
	}
	defer k.close()
	if err := launch.Ready(k.made); err != nil {
		return err
	}
	signals, stop := notified()
	defer stop()
	ctx, cancel := closed(cmd.Context(), signals)
	defer cancel()
	launch.Ended(ctx, x.keeper)
	k.server.Stop()
	force := time.AfterFunc(lastAnswers, k.server.Stop)
	err = k.server.Wait()
	force.Stop()
	if !x.quiet {
		fmt.Fprintln(cli.Harmless(cmd.ErrOrStderr(), "text"), k.figures().words())
	}
	if x.summary != "" {
		b, _ := json.Marshal(k.figures()) // cannot fail
		half := x.summary + ".half"       // a reader sees all of it or nothing
		err = errors.Join(err, os.WriteFile(half, append(b, '\n'), 0o600), os.Rename(half, x.summary))
	}
	return err
}

// close removes the files of the run.
func (k *keeper) close() {
	if k.config.Shared != nil {
		k.config.Shared.Close()
	}
	if k.made.Folder != nil {
		_ = k.made.Folder.Remove() // the next run removes what is left
	}
}

// keeper is the proxy of a run.
type keeper struct {
	config proxy.Config
	proxy  *proxy.Proxy
	server *proxy.Server
	door   *forward.Door
	made   launch.Made
}

// open makes the proxy. What it has opened is closed by close, also after an error.
func (x *execFlags) open(cmd *cobra.Command, k *keeper) (err error) {
	if k.config, err = x.configured(cmd); err != nil {
		return err
	}
	if err := openProxyShare(cmd.Context(), &k.config); err != nil {
		return err
	}
	if k.made.Folder, err = launch.NewFolder(); err != nil {
		return err
	}
	k.made.Bundle = filepath.Join(k.made.Folder.Public, "ca.pem")
	if k.proxy, err = proxy.New(k.config); err != nil {
		return cli.Usage(inFlags(err))
	}
	return k.serve()
}

// serve opens the proxy to the program alone: by a token, which is in the program's environment.
func (k *keeper) serve() error {
	token := rand.Text()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	k.made.URL = (&url.URL{Scheme: "http", User: url.UserPassword("paceline", token), Host: l.Addr().String()}).String()
	k.server = k.proxy.Start(nowhere{make(chan struct{})}, nil)
	k.door, err = k.server.Forward(proxy.Forwarding{
		Listener: l, Bundle: k.made.Bundle, Getenv: os.Getenv, Tunnels: forward.AnyTunnels, Days: keeperDays,
		Admits: func(r *http.Request) bool { return hasToken(r, token) || ownJava(r) },
	})
	if err != nil {
		return err
	}
	k.made.Named = map[string]int{}
	for _, u := range k.config.Upstreams {
		for _, port := range portsOf(u.To) {
			at := net.JoinHostPort(forward.CanonicalHost(u.To.Hostname()), port)
			if k.made.Named[at] != 0 {
				continue
			}
			origin, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			k.made.Named[at] = origin.Addr().(*net.TCPAddr).Port
			k.door.ServeOrigin(origin, u.To.Hostname(), port)
		}
	}
	return nil
}

// portsOf are the ports of a server. Without one, a program may come by http or by https.
func portsOf(u *url.URL) []string {
	if p := u.Port(); p != "" && p != map[string]string{"http": "80", "https": "443"}[u.Scheme] {
		return []string{p}
	}
	return []string{"443", "80"}
}

func hasToken(r *http.Request, token string) bool {
	_, sent, _ := strings.Cut(r.Header.Get("Proxy-Authorization"), " ")
	b, _ := base64.StdEncoding.DecodeString(sent)
	_, password, _ := strings.Cut(string(b), ":")
	return subtle.ConstantTimeCompare([]byte(password), []byte(token)) == 1
}

// ownJava admits Java, which sends no password to a proxy, if it is of this user. Its HttpClient names
// nobody in CONNECT.
func ownJava(r *http.Request) bool {
	if agent := r.UserAgent(); agent != "" && !strings.HasPrefix(agent, "Java") {
		return false
	}
	here, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	uid, ok := forward.UserAt(here, r.RemoteAddr)
	return ok && uid == os.Getuid()
}

// nowhere is a listener that nobody reaches: a program comes by the forward proxy alone.
type nowhere struct{ over chan struct{} }

func (n nowhere) Accept() (net.Conn, error) { <-n.over; return nil, net.ErrClosed }
func (n nowhere) Close() error              { close(n.over); return nil }
func (nowhere) Addr() net.Addr              { return &net.TCPAddr{} }

// runFigures are the figures of a run's end.
type runFigures struct {
	Hosts     []string `json:"hosts"`
	Requests  int64    `json:"requests"`
	Refused   int64    `json:"refused"`
	Named     int64    `json:"connections"`
	Others    int64    `json:"other_connections"`
	Elsewhere int      `json:"other_hosts"`
}

func (k *keeper) figures() runFigures {
	var f runFigures
	for _, u := range k.config.Upstreams {
		f.Hosts = append(f.Hosts, u.To.Host)
	}
	var sum observe.Counts
	for _, source := range k.proxy.Sources() {
		for _, c := range source.Snapshot().Clients {
			observe.AddCounts(&sum, &c.Counts)
		}
	}
	f.Requests, f.Refused = sum.Sent-sum.Unsent, sum.Limited
	f.Named, f.Others, f.Elsewhere = k.door.Figures()
	return f
}

// words is the line at the end. A program that went past the proxy is named.
func (f runFigures) words() string {
	hosts := sanitize.Some(f.Hosts, 3)
	var b strings.Builder
	if f.Named == 0 {
		fmt.Fprintf(&b, "paceline: nothing of the program came for %s: it may not read HTTPS_PROXY, or it asked "+
			"nothing there", hosts)
	} else {
		fmt.Fprintf(&b, "paceline: %d requests to %s, %d refused", f.Requests, hosts, f.Refused)
	}
	if f.Others > 0 {
		fmt.Fprintf(&b, "; %d connections to %d other hosts passed unread", f.Others, f.Elsewhere)
	}
	return b.String()
}
