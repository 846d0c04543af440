package forward

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/proxy"
)

// reach opens a connection to another host, by the proxy of the environment if there is one.
func (d *Door) reach(host, port string) (net.Conn, error) {
	target := net.JoinHostPort(host, port)
	via := d.c.Proxies.For(&url.URL{Scheme: "https", Host: target})
	switch {
	case via == nil:
		return d.dial(d.over, "tcp", target)
	case strings.HasPrefix(via.Scheme, "http"):
		return d.reachBy(via, target)
	}
	by, err := proxy.FromURL(via, proxy.Direct)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(d.over, reach)
	defer cancel()
	return by.(proxy.ContextDialer).DialContext(ctx, "tcp", target) // socks5, which is one
}

// reachBy asks an http or https proxy for a connection.
func (d *Door) reachBy(via *url.URL, target string) (net.Conn, error) {
	at := via.Host
	if via.Port() == "" {
		at = net.JoinHostPort(via.Hostname(), map[string]string{"http": "80", "https": "443"}[via.Scheme])
	}
	c, err := d.dial(d.over, "tcp", at)
	if err != nil {
		return nil, err
	}
	if via.Scheme == "https" {
		c = tls.Client(c, &tls.Config{ServerName: via.Hostname()})
	}
	ask := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: target}, Host: target, Header: http.Header{}}
	if u := via.User; u != nil {
		password, _ := u.Password()
		ask.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	_ = c.SetDeadline(time.Now().Add(reach))
	r := bufio.NewReader(c)
	if err = ask.Write(c); err == nil {
		var resp *http.Response
		if resp, err = http.ReadResponse(r, ask); err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("the proxy %s answers %q", via.Host, resp.Status)
		}
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	_ = c.SetDeadline(time.Time{})
	return withHead(c, r), nil
}

// figures count connections.
type figures struct {
	named, others atomic.Int64
	mu            sync.Mutex
	hosts         map[string]bool
}

type carriedKey struct{}

// Connected is for the ConnContext of the server of a Door. With it, the Door counts a connection once, however
// many requests by http come on it.
func Connected(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, carriedKey{}, new(atomic.Uint32))
}

const (
	firstNamed uint32 = 1 << iota
	firstOther
)

// isFirst reports whether a request is the first of its kind on its connection.
func isFirst(r *http.Request, kind uint32) bool {
	carried, ok := r.Context().Value(carriedKey{}).(*atomic.Uint32)
	return !ok || carried.Or(kind)&kind == 0
}

// mostHosts bounds what strangers' names take.
const mostHosts = 10_000

func (f *figures) other(host string, isNew bool) {
	if isNew {
		f.others.Add(1)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hosts == nil {
		f.hosts = map[string]bool{}
	}
	if len(f.hosts) < mostHosts {
		f.hosts[host] = true
	}
}

// Figures returns how many connections were made to named hosts, and to others, and the number of
// these others.
func (d *Door) Figures() (named, others int64, hosts int) {
	d.figures.mu.Lock()
	defer d.figures.mu.Unlock()
	return d.figures.named.Load(), d.figures.others.Load(), len(d.figures.hosts)
}

// lasting lets a client pause for as long as it likes: nothing of a tunnel is kept here but what the
// network keeps.
func lasting(c net.Conn) net.Conn {
	at := c
	if h, ok := c.(*headed); ok {
		at = h.Conn
	}
	if l, ok := at.(interface{ Last() error }); ok {
		_ = l.Last() // if it fails, the next Write fails
	}
	return c
}

// tunnel copies bytes between a client and another host, both ways, until both have ended.
func (d *Door) tunnel(client, other net.Conn) {
	stop := context.AfterFunc(d.over, func() {
		client.Close()
		other.Close()
	})
	defer stop()
	defer client.Close()
	defer other.Close()
	var both sync.WaitGroup
	pass := func(to, from net.Conn) {
		if _, err := io.Copy(to, from); err != nil { // nothing more can come of either way
			to.Close()
			from.Close()
			return
		}
		_ = closeWrite(to)
	}
	both.Go(func() { pass(other, client) })
	both.Go(func() { pass(client, other) })
	both.Wait()
}
