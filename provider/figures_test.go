package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/provider"
)

// TestFigures compares the published numbers, and the forms of refusals, with the last reading of
// the providers' pages. Plans of money and waits depend on them, and a slip of a digit shows
// nowhere else. After a change: -update, and read the difference beside the page.
func TestFigures(t *testing.T) {
	var b strings.Builder
	for _, p := range provider.Providers() {
		fmt.Fprintf(&b, "%s\n", p.Name)
		for _, m := range p.Models {
			fmt.Fprintf(&b, "\tmodel %s: USD %v in, %v out, %v cached; %d tokens, %d out\n", m.Name, m.Input, m.Output, m.Cached, m.Context, m.MaxOutput)
		}
		if a := p.Batch; a != nil {
			fmt.Fprintf(&b, "\tbatch: %v off, within %v, %d requests, %d bytes\n", a.Discount, a.Within, a.Requests, a.Bytes)
		}
		for _, v := range p.Published {
			for _, l := range v.Policies {
				fmt.Fprintf(&b, "\tpreset %s: %d %s", v.Name, l.Limit, l.Unit)
				if l.Burst > 0 {
					fmt.Fprintf(&b, " at once %d", l.Burst)
				}
				fmt.Fprintf(&b, " per %v, %s, of the %s\n", l.Window, l.Rule, l.Scope)
			}
		}
		for _, s := range provider.Signs(p.Name) {
			fmt.Fprintf(&b, "\tsign: %v %q %q %v %q means %q by %q, wait %v\n", s.Status, s.Field, s.Path, s.Body, s.Is, s.Means, s.By, s.Wait)
		}
	}
	golden.Compare(t, "figures.txt", b.String())
}
