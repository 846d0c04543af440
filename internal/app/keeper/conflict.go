//go:build unix

package keeper

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/paceline-go/paceline/internal/app/proxy"
)

// ConflictError means that another run has other settings for a host. A host has one set of limits.
type ConflictError struct {
	Host, Run string
	// Field is the field of proxy.Upstream that differs. Theirs and Ours are its values if they are
	// limits, and otherwise empty: a value may be secret.
	Field, Theirs, Ours string
}

func (e *ConflictError) Error() string {
	if e.Theirs != "" {
		return fmt.Sprintf("%s has the limit %s in the run of %s, and %s in this one; expected the same limit, or --apart",
			e.Host, e.Theirs, e.Run, e.Ours)
	}
	return fmt.Sprintf("%s has other settings (%s) in the run of %s; expected the same, or --apart", e.Host, e.Field, e.Run)
}

// conflict returns a *ConflictError if both runs name a host, in different ways.
func conflict(r, other *Run) error {
	if r.Settings == other.Settings {
		return nil
	}
	for i := range r.Upstreams {
		for _, host := range origins(&r.Upstreams[i]) {
			ours, theirs := r.at(host), other.at(host)
			if len(theirs) == 0 {
				continue
			}
			e := &ConflictError{Host: host, Run: other.client.Name}
			if len(ours) != len(theirs) {
				e.Field = "Upstreams"
				return e
			}
			for j := range ours {
				if e.Field = differs(ours[j], theirs[j]); e.Field == "" {
					continue
				}
				if slices.Contains(limiting, e.Field) {
					e.Ours, e.Theirs = limitsOf(ours[j]), limitsOf(theirs[j])
				}
				return e
			}
		}
	}
	return nil
}

// limiting are the fields that say what a server allows.
var limiting = []string{"Limits", "Preset", "PerSecond", "InFlight", "Auto"}

// at returns the upstreams of a run at a host, in the order of their paths.
func (r *Run) at(host string) (all []*proxy.Upstream) {
	for i := range r.Upstreams {
		if slices.Contains(origins(&r.Upstreams[i]), host) {
			all = append(all, &r.Upstreams[i])
		}
	}
	slices.SortFunc(all, func(a, b *proxy.Upstream) int { return cmp.Compare(a.To.Path, b.To.Path) })
	return all
}

// differs returns the first field in which two upstreams differ, limits first; empty: in none. What is
// about base URLs and pages is no difference.
func differs(a, b *proxy.Upstream) string {
	x, y := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	fields := slices.Clone(limiting)
	for i := range x.NumField() {
		switch name := x.Type().Field(i).Name; {
		case !x.Type().Field(i).IsExported(), slices.Contains(fields, name):
		case name == "Name", name == "Path", name == "Host", name == "KeepLinks":
		default:
			fields = append(fields, name)
		}
	}
	for _, name := range fields {
		if name == "TLS" {
			if !proxy.SameTLS(a.TLS, b.TLS) {
				return name
			}
			continue
		}
		if !reflect.DeepEqual(x.FieldByName(name).Interface(), y.FieldByName(name).Interface()) {
			return name
		}
	}
	return ""
}

// limitsOf are the limits of an upstream, in words.
func limitsOf(u *proxy.Upstream) string { return cmp.Or(strings.Join(u.LimitNames(), " and "), "none") }
