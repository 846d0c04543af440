package proxy

import (
	"net/url"
	"testing"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/sharestore"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// Files and stores of earlier versions know no resources. A request in such a file counts in each
// resource of its key. A store has the limits of most requests under the name of the key.
func TestResourcesOfEarlierVersions(t *testing.T) {
	p, err := journal.ParsePlace("api|api.github.com|k||GET+%2Fuser|c")
	if err != nil || p.Resource != "" || p.Client != "c" {
		t.Fatalf("%+v, %v", p, err)
	}
	core := transport.Partition{Scope: provider.Resource, Host: "api.github.com", Key: "k", Resource: "core"}
	if !p.In(core) || p.String() != "api|api.github.com|k||GET+%2Fuser|c" {
		t.Errorf("%q counts in core: %t", p, p.In(core))
	}
	p.Resource = "search"
	if back, err := journal.ParsePlace(p.String()); err != nil || back != p || p.In(core) {
		t.Errorf("%q, %v", back, err)
	}

	l := sharestore.New(sharestore.Config{})
	u := Upstream{To: &url.URL{Scheme: "https", Host: "api.github.com"}}
	key := core
	key.Scope, key.Resource = provider.Key, ""
	search := core
	search.Resource = "search"
	name := func(p transport.Partition) string { return l.Name(u.placeOf(l, p, false)) }
	if name(core) != name(key) || name(search) == name(key) {
		t.Errorf("the key %q, core %q, search %q", name(key), name(core), name(search))
	}
}

// A limit of a resource holds for the requests that count in it. A pattern names several, and without one it is any
// named resource, but not none.
func TestCovers(t *testing.T) {
	for _, c := range []struct {
		scope    provider.Scope
		only     string
		resource string
		want     bool
	}{
		{provider.Resource, "search", "search", true},
		{provider.Resource, "search", "core", false},
		{provider.Resource, "search", "", false},
		{provider.Resource, "", "core", true},
		{provider.Resource, "", "", false},
		{provider.Key, "", "core", true},
		{provider.Key, "", "", true},
	} {
		l := Limit{Scope: c.scope, Only: c.only}
		if got := l.Covers(c.resource); got != c.want {
			t.Errorf("a limit of %v, only %q, for %q: %v", c.scope, c.only, c.resource, got)
		}
	}
}
