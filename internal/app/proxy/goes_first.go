package proxy

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/charge"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

const (
	// goesFirst ends the name of the line for requests of Upstream.First.
	goesFirst = " (first)"
	// besideFirst begins the end of the name of the line for other requests there. The name of the
	// upstream follows.
	besideFirst = " (beside first at "

	// firstBy is by how much earlier requests of First count as having come.
	firstBy = time.Minute
	// defaultFirstFree is FirstFree if that is zero.
	defaultFirstFree = 0.1
)

// firsts returns the requests of First as charges, by which a request is looked up; nil: there are none.
func (u *Upstream) firsts() (*provider.Charges, error) {
	if len(u.First) == 0 {
		return nil, nil
	}
	list := make([]provider.Charge, len(u.First))
	for i, on := range u.First {
		list[i].On = on
	}
	return provider.NewCharges(list)
}

// checkFirst fills in FirstFree.
func (u *Upstream) checkFirst() *ConfigError {
	for i := range u.First {
		if _, err := (&Upstream{First: u.First[i : i+1]}).firsts(); err != nil {
			return wrong(fmt.Sprintf(".First[%d]", i), "%s", charge.Reason(err))
		}
	}
	switch {
	case u.FirstFree != 0 && len(u.First) == 0:
		return wrong(".FirstFree", "no request goes first; expected requests in first, such as POST /order")
	case u.FirstFree >= 1: // NaN is no number of a file
		return wrong(".FirstFree", "%v, expected less than 1", u.FirstFree)
	case len(u.First) > 0:
		u.FirstFree = cmp.Or(u.FirstFree, defaultFirstFree)
	}
	return nil
}

// GoesFirst reports whether a request goes before others of its client. Its URL is that at the server. u
// is checked.
func (u *Upstream) GoesFirst(r *http.Request) bool {
	all, err := u.firsts()
	if err != nil {
		panic(err) // checkFirst has made them
	}
	c, _ := all.Of(r)
	return c != nil
}

// IsLineOf reports whether a name in Snapshots is of a client, or of one of its lines for First.
func IsLineOf(name, client string) bool {
	end, is := strings.CutPrefix(name, client)
	return is && (end == "" || end == goesFirst || strings.HasPrefix(end, besideFirst))
}

// lineOf returns the line in which a request of a client waits. A client has a second one for requests of
// First. Its other requests leave FirstFree. Where other upstreams leave another part, they are a line of
// their own, since a line has one part.
func (u *upstream) lineOf(r *http.Request, c transport.Client) transport.Client {
	if u.first == nil {
		return c
	}
	if row, _ := u.first.Of(r); row != nil && c.CountsAs == "" { // a batch goes beside others
		c.CountsAs, c.Name = c.Name, c.Name+goesFirst
		c.HeadStart += firstBy
		return c
	}
	if u.apart {
		c.CountsAs, c.Name = cmp.Or(c.CountsAs, c.Name), c.Name+besideFirst+u.Name+")"
	}
	c.Reserve = max(c.Reserve, u.FirstFree)
	return c
}

// checkNames finds clients with the name of another client's line.
func (c *Config) checkNames() error {
	if !slices.ContainsFunc(c.Upstreams, func(u Upstream) bool { return u.Batches.Folder != "" || len(u.First) > 0 }) {
		return nil
	}
	for i, k := range c.Clients.List {
		if own := ownName(k.Name); own != k.Name {
			return wrong(fmt.Sprintf("Clients.List[%d].Name", i), "%q is what a line of the client %q is called; "+
				"expected another name", k.Name, own)
		}
	}
	return nil
}

// ownName is a name without the end of any line of a client.
func ownName(name string) string {
	name, _, _ = strings.Cut(name, besideFirst)
	return strings.TrimSuffix(strings.TrimSuffix(name, goesFirst), inBulk)
}
