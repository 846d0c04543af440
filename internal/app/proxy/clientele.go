package proxy

import (
	"cmp"
	"container/list"
	"crypto/subtle"
	"encoding/base64"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/app/forward"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/transport"
)

// client is the client of a request.
type client struct {
	Client
	asker transport.Client
	owner string       // whose files and batches it has
	seen  *atomic.Bool // a request was of it
}

// mostWaiting is the default of Client.MaxWaiting.
const mostWaiting = 10000

// clientele is shared by a Proxy and all its successors through Apply. It has the clients' own
// limits, each over all upstreams together.
type clientele struct {
	*transport.Clients
	live bool          // limits may come and go
	idle time.Duration // how long a client's requests may count
	// keyName is the name of a request's credential, as in its partition.
	keyName func(r *http.Request) string
	now     atomic.Pointer[Clients] // the configuration of the limits
}

func newClientele(c *Config) (*clientele, error) {
	all, err := transport.NewClients(transport.ClientsConfig{Most: c.atHand, Idle: c.idle(), MaxFrozen: c.Bounds.Frozen})
	if err != nil {
		return nil, err
	}
	k := &clientele{Clients: all, live: c.Live, keyName: func(r *http.Request) string { return transport.PartitionOf(r).Key }}
	if c.Shared != nil {
		k.keyName = func(r *http.Request) string { return c.Shared.KeyOf(r.Header, r.URL) }
	}
	for i := range c.Upstreams {
		k.idle = max(k.idle, c.Upstreams[i].remembered(c))
	}
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
	return &client{c, transport.Client{Name: c.Name, Weight: c.Weight, HeadStart: c.HeadStart, Reserve: c.Reserve,
		MaxWaiting: cmp.Or(c.MaxWaiting, mostWaiting), Limit: own}, c.Name, new(atomic.Bool)}
}

// clients finds the client of a request.
type clients struct {
	Clients
	*clientele
	open   bool
	atHand int       // see Config
	keyed  bool      // some clients have keys
	listed []*client // in the order of the List
	began  time.Time
	told   atomic.Bool // what was never used

	rest   *client // all clients beyond Most
	mu     sync.Mutex
	others map[string]*list.Element // clients outside the List, by name
	recent list.List                // these clients, the one that asked last in front
}

func newClients(c *Config, all *clientele) *clients {
	k := &clients{began: time.Now(), Clients: c.Clients, clientele: all, open: c.Open, atHand: c.atHand, keyed: c.Clients.HasKeys(),
		others: map[string]*list.Element{}, rest: all.client(named(c.Clients.Default, "others"))}
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
func (c *clients) of(r *http.Request, whole bool) (who *client, key string) {
	if c.keyed {
		if who, key := c.byKey(r, whole); who != nil {
			return who, key
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
	switch {
	case !address.IsValid(): // a socket of systemd may have a path as its address
		return c.other("local"), ""
	case c.keyed || c.Header != "" || !address.IsLoopback():
		return c.other(address.String()), ""
	}
	return c.program(address.String(), r), ""
}

// keyShown is how many letters of a credential's name distinguish programs.
const keyShown = 6

// program returns the client of a request from this machine, where all programs share an address. The
// product in User-Agent and the credential distinguish them.
func (c *clients) program(address string, r *http.Request) *client {
	name := address
	if p := product(r.UserAgent()); p != "" {
		name += " " + p
	}
	if transport.CredentialOf(r) != "" {
		key := c.keyName(r)
		name += " key " + key[max(len(key)-keyShown, 0):]
	}
	return c.ownedBy(address, name)
}

// product is the first product of a User-Agent, without its version.
func product(agent string) string {
	if i := strings.IndexAny(agent, "/ \t;("); i >= 0 {
		agent = agent[:i]
	}
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '?'
		}
		return r
	}, strings.ToLower(agent[:min(len(agent), mostName)]))
}

// byKey returns the client whose key for the proxy a request has. By the forward proxy that key comes
// beside the request, whose own fields have keys for the server.
func (c *clients) byKey(r *http.Request, whole bool) (who *client, key string) {
	if whole {
		key := keyIn(forward.CredentialOf(r.Context()))
		if i := c.owner(key); i >= 0 {
			return c.listed[i], key
		}
		return nil, ""
	}
	for _, name := range keyFields {
		for _, v := range r.Header[name] {
			key := keyIn(v)
			if i := c.owner(key); i >= 0 {
				return c.listed[i], key
			}
		}
	}
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") { // of programs that cannot set a field
		name, v, _ := strings.Cut(pair, "=")
		plain, err := url.QueryUnescape(v)
		if key := keyIn(plain); err == nil && secret.PrivateParameter(name, key) {
			if i := c.owner(key); i >= 0 {
				return c.listed[i], key
			}
		}
	}
	return nil, ""
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
	name = ownName(shortened(name)) // not a further line of another
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

// namesAtHand is how many clients outside the List are at hand, if Most is not set. A client that is
// not is made again: what counts of it is elsewhere, in the clientele.
const namesAtHand = 4096

// stranger is a client outside the List.
type stranger struct {
	*client
	asked time.Time
}

// other returns a client outside the List.
func (c *clients) other(name string) *client { return c.ownedBy(name, name) }

// ownedBy is other, for a client with the files and batches of owner.
func (c *clients) ownedBy(owner, name string) *client {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.others[name]; e != nil {
		who := e.Value.(*stranger)
		who.asked = now
		c.recent.MoveToFront(e)
		return who.client
	}
	if len(c.others) >= cmp.Or(c.Most, c.atHand, namesAtHand) {
		oldest := c.recent.Back()
		if c.Most > 0 && now.Sub(oldest.Value.(*stranger).asked) <= c.idle {
			return c.rest
		}
		delete(c.others, c.recent.Remove(oldest).(*stranger).Name)
	}
	who := &stranger{c.client(named(c.Default, strings.Clone(name))), now}
	who.owner = strings.Clone(owner)
	c.others[who.Name] = c.recent.PushFront(who)
	return who.client
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
