package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/app/sharestore"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
)

// A process's part, from flags or the file of a proxy, is in the store. The other processes find it
// there, and share show prints it.
func TestSharePart(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string]func(address string) *storeFlags{
		"flags": func(address string) *storeFlags {
			return &storeFlags{Address: address, Name: "api", Fallback: "wait", Weight: 2.5, Least: 0.2}
		},
		"a proxy's": func(address string) *storeFlags {
			said := storeFlags{Address: address, Name: "api", Fallback: "wait", Weight: 2.5, Least: 0.2}
			return shareOf(shareBy(&said))
		},
		"a file": func(address string) *storeFlags {
			return shareOf(proxy.ShareBy{Store: proxy.Secret(address), Name: "api", Weight: 2.5, Least: 0.2})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := "sqlite:" + filepath.Join(t.TempDir(), "limits.db")
			ripeStore(t, address, "api", perSecondKeeper(20))
			l, err := flags(address).Open(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			member, err := l.Of(l.Name(sharestore.Place{}), func() limit.Limiter { return perSecondKeeper(20)() })
			if err != nil {
				t.Fatal(err)
			}
			for member.Ready(0, limit.One) > 0 { // it is fetched
				time.Sleep(time.Millisecond)
			}
			limittest.Admit(member, 0, limit.One) // and in flight until the end
			if e := storeBook(t, address, "api").Nodes[0]; e.Weight != 2500 || e.Least != 200 {
				t.Errorf("the store has weight %d and least %d, in thousandths", e.Weight, e.Least)
			}
			if says := strings.Join(strings.Fields(sharePrints(t, "show", address, "api")), " "); !strings.Contains(says, "weight 2.5") || !strings.Contains(says, "at least 20 %") {
				t.Error(says)
			}
		})
	}
}
