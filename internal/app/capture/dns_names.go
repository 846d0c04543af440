package capture

import (
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// first and last are the addresses that names get: those of tests of devices (RFC 2544), which no
// network routes.
var (
	first = netip.AddrFrom4([4]byte{198, 18, 0, 1})
	last  = netip.AddrFrom4([4]byte{198, 19, 255, 254})
)

// names has an address for each name that a program asked for. A name keeps its address, since
// programs keep it. The zero value has none. Safe for concurrent use.
type names struct {
	mu     sync.Mutex
	byName map[string]netip.Addr
	byAddr map[netip.Addr]string
	next   netip.Addr
}

// of returns the address of a name. ok is false if there are no addresses left.
func (n *names) of(name string) (a netip.Addr, ok bool) {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	n.mu.Lock()
	defer n.mu.Unlock()
	if a, ok = n.byName[name]; ok {
		return a, true
	}
	if n.byName == nil {
		n.byName, n.byAddr, n.next = map[string]netip.Addr{}, map[netip.Addr]string{}, first
	}
	if a = n.next; last.Less(a) {
		return netip.Addr{}, false
	}
	n.next = a.Next()
	n.byName[name], n.byAddr[a] = a, name
	return a, true
}

// has reports whether a name has an address.
func (n *names) has(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, ok := n.byName[strings.ToLower(strings.TrimSuffix(name, "."))]
	return ok
}

// pointed returns the name of an address as a question for it has it: 1.0.18.198.in-addr.arpa. Empty:
// no name has it.
func (n *names) pointed(arpa string) string {
	text, ok := strings.CutSuffix(strings.ToLower(arpa), ".in-addr.arpa.")
	if !ok {
		return ""
	}
	parts := strings.Split(text, ".")
	slices.Reverse(parts)
	a, err := netip.ParseAddr(strings.Join(parts, "."))
	if err != nil {
		return ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byAddr[a]
}

// name returns the name behind an address. An address that no name has is its own name.
func (n *names) name(a netip.Addr) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if name, ok := n.byAddr[a.Unmap()]; ok {
		return name
	}
	return a.Unmap().String()
}
