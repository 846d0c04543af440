//go:build unix

package launch

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/paceline-go/paceline/internal/app/forward"
)

// Made is what the keeper made for the program. A command gets it as JSON.
type Made struct {
	forward.At
	Folder *Folder
	// Named are the upstreams' hosts with their ports, and for each a port of this machine at which
	// connections to it may begin without CONNECT.
	Named map[string]int
	// Socket is for a program whose connections are captured: see package capture. Local are ports of
	// this machine that it reaches. Without a Socket it is led by its environment.
	Socket string   `json:",omitempty"`
	Local  []uint16 `json:",omitempty"`
}

// Leads is the variable by which paceline, as a program or below one, learns that exec leads its requests.
const Leads = "PACELINE_EXEC"

// Captures is its value where connections are captured, also those to this machine.
const Captures = "capture"

// Environment returns the variables that lead a program to the keeper, as NAME=VALUE, and writes
// the files that some of them name. It is was, with these variables set. Variables that the keeper
// alone needs are in hidden, and taken out.
func Environment(was []string, m Made, hidden []string) ([]string, error) {
	set := map[string]string{}
	for _, v := range forward.Variables {
		if m.Socket == "" || v.IsBundle() {
			set[v.Name] = v.Of(m.At)
		} else { // a proxy of the user's own would be a way past the limits
			hidden = append(hidden[:len(hidden):len(hidden)], v.Name)
		}
	}
	get := func(name string) string { return valueOf(was, name) }
	for _, v := range files {
		if v.tokenless && !forward.KnowsUsers {
			continue
		}
		value, err := v.make(m, get)
		if err != nil {
			return nil, err
		}
		if value != "" {
			set[v.name] = value
		}
	}
	if set[Leads] = "1"; m.Socket != "" {
		set[Leads] = Captures
	}
	all := slices.DeleteFunc(slices.Clone(was), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		_, ours := set[name]
		return ours || slices.Contains(hidden, name)
	})
	for name, value := range set {
		all = append(all, name+"="+value)
	}
	return all, nil
}

// valueOf returns the value of a variable in an environment. The last one counts.
func valueOf(env []string, name string) (value string) {
	for _, v := range env {
		if n, x, _ := strings.Cut(v, "="); n == name {
			value = x
		}
	}
	return value
}

// TakenOut returns what keeps a program from the proxy; empty: nothing. It is NO_PROXY, with the host
// that it takes out, or a file of curl's or git's settings. The program would go past the limits.
func TakenOut(env []string, urls []*url.URL) string {
	if what := inNoProxy(env, urls); what != "" {
		return what
	}
	return overriding(env, urls)
}

// inNoProxy returns the variable that takes out a host. Programs read it in many ways, so the widest
// counts: entries between commas or spaces, with a dot or a star in front, a port behind, or a range.
func inNoProxy(env []string, urls []*url.URL) string {
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		value := valueOf(env, name)
		for _, u := range urls {
			if host := forward.CanonicalHost(u.Hostname()); takesAny(value, host) {
				return name + "=" + value + " takes out " + host
			}
		}
	}
	return ""
}

// takesAny reports whether an entry of a list is for a host.
func takesAny(list, host string) bool {
	entries := strings.FieldsFunc(strings.ToLower(list), func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	return slices.ContainsFunc(entries, func(entry string) bool { return takes(entry, host) })
}

// takes reports whether an entry of NO_PROXY is for a host.
func takes(entry, host string) bool {
	if entry == "*" {
		return true
	}
	address, err := netip.ParseAddr(host)
	if p, perr := netip.ParsePrefix(entry); err == nil && perr == nil {
		return p.Contains(address)
	}
	if h, _, err := net.SplitHostPort(entry); err == nil {
		entry = h
	}
	entry = forward.CanonicalHost(strings.TrimLeft(entry, "*."))
	return entry != "" && (host == entry || err != nil && strings.HasSuffix(host, "."+entry))
}
