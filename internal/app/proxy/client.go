package proxy

import (
	"cmp"
	"crypto/subtle"
	"encoding/base64"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/transport"
)

// client is the client of a request.
type client struct {
	Client
	asker transport.Client
}

// mostWaiting is the default of Client.MaxWaiting.
const mostWaiting = 10000

// clientele is shared by a Proxy and all its successors through Apply. It has the clients' own
// limits, each over all upstreams together.
type clientele struct {
	*transport.Clients
	live bool                    // limits may come and go
	now  atomic.Pointer[Clients] // the configuration of the limits
}

func newClientele(c *Config) (*clientele, error) {
	idle := time.Duration(0)
	for i := range c.Upstreams {
		idle = max(idle, c.Upstreams[i].idle(c))
	}
	all, err := transport.NewClients(transport.ClientsConfig{Idle: idle})
	if err != nil {
		return nil, err
	}
	k := &clientele{Clients: all, live: c.Live}
	k.now.Store(&c.Clients)
	return k, nil
}

// limiter makes a client's limits from the present configuration.
func (k *clientele) limiter(name string) limit.Limiter { return k.now.Load().of(name).held(k.live) }

// change applies the configured limits at once, also to waiting requests.
func (k *clientele) change() {
	k.Change(func(now mono.Time, p transport.Partition, l limit.Limiter) {
		if v := limit.VaryingIn(l); v != nil {
			k.now.Load().of(p.Client).change(now, v)
		}
	})
}

func (k *clientele) client(c Client) *client {
	own := func() limit.Limiter { return k.limiter(c.Name) }
	return &client{c, transport.Client{Name: c.Name, Weight: c.Weight, HeadStart: c.HeadStart, MaxWaiting: cmp.Or(c.MaxWaiting, mostWaiting), Limit: own}}
}

// clients finds the client of a request.
type clients struct {
	Clients
	*clientele
	open   bool
	keyed  bool      // some clients have keys
	listed []*client // in the order of the List

	mu     sync.Mutex
	others map[string]*client // clients outside the List, by name
	rest   *client            // all clients beyond Most
}

func newClients(c *Config, all *clientele) *clients {
	k := &clients{Clients: c.Clients, clientele: all, open: c.Open, keyed: c.Clients.hasKeys(), others: map[string]*client{}, rest: all.client(named(c.Clients.Default, "others"))}
	for _, each := range c.Clients.List {
		k.listed = append(k.listed, all.client(each))
	}
	return k
}

func named(c Client, name string) Client {
	c.Name = name
	return c
}

// keyFields are the fields in which clients of APIs send their keys.
var keyFields = [...]string{FieldKey, "Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"}

// of returns the client of a request, and its key for the proxy, which must not be passed on. The
// client is nil if the request may not pass.
func (c *clients) of(r *http.Request) (who *client, key string) {
	if c.keyed {
		for _, name := range keyFields {
			for _, v := range r.Header[name] {
				key := keyIn(v)
				if i := c.owner(key); i >= 0 {
					return c.listed[i], key
				}
			}
		}
		if !c.open {
			return nil, ""
		}
	}
	address := addressOf(r)
	if c.Header != "" {
		if name := strings.TrimSpace(r.Header.Get(c.Header)); name != "" {
			return c.byName(name), ""
		}
	}
	for _, k := range c.listed {
		for _, p := range k.Addresses {
			if p.Contains(address) {
				return k, ""
			}
		}
	}
	if !address.IsValid() { // a socket of systemd may have a path as its address
		return c.other("local"), ""
	}
	return c.other(address.String()), ""
}

// owner returns the index of the client with this key, or -1. It takes the same time for every key.
func (c *clients) owner(key string) (owner int) {
	owner = -1
	h := HashKey(key)
	for i := range c.List {
		for j := range c.List[i].Keys {
			if subtle.ConstantTimeCompare(h[:], c.List[i].Keys[j][:]) == 1 {
				owner = i
			}
		}
	}
	return owner
}

// keyIn is the key in a header field: the whole value, or the part after the name of a scheme. Of a
// name and a password it is the password, or the name if there is no password.
func keyIn(v string) string {
	scheme, rest, ok := strings.Cut(strings.TrimSpace(v), " ")
	if !ok {
		return scheme
	}
	rest = strings.TrimSpace(rest)
	if !strings.EqualFold(scheme, "Basic") {
		return rest
	}
	b, err := base64.StdEncoding.DecodeString(rest)
	if err != nil {
		return rest
	}
	name, password, _ := strings.Cut(string(b), ":")
	if password == "" {
		return name
	}
	return password
}

// mostName is how many bytes of a name are used, if a stranger chose the name.
const mostName = 64

// byName returns the client of a name that a request states. A client with keys is found by its
// keys alone.
func (c *clients) byName(name string) *client {
	name = shortened(name)
	for _, k := range c.listed {
		switch {
		case k.Name != name:
		case len(k.Keys) == 0:
			return k
		default:
			return c.other(name + " (without its key)")
		}
	}
	return c.other(name)
}

func shortened(name string) string {
	if len(name) > mostName {
		name = name[:mostName] + "…"
	}
	return strings.ToValidUTF8(name, "?")
}

// other returns a client outside the List.
func (c *clients) other(name string) *client {
	c.mu.Lock()
	defer c.mu.Unlock()
	if who := c.others[name]; who != nil {
		return who
	}
	if len(c.others) >= c.Most {
		return c.rest
	}
	who := c.client(named(c.Default, strings.Clone(name)))
	c.others[who.Name] = who
	return who
}

// addressOf is the source address of a request, without its port.
func addressOf(r *http.Request) netip.Addr {
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		return at.Addr().Unmap().WithZone("")
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	at, _ := netip.ParseAddr(host)
	return at
}
