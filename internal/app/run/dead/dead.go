// Package dead says why requests become dead letters, and which of them another run sends again.
package dead

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Class is why a request became a dead letter. Each class needs another change before the request
// is worth sending again.
type Class uint8

const (
	unclassed   Class = iota
	Outage            // no answer came, or not all of it, or one of a gateway
	Failed            // the server failed
	Limited           // a limit refused it
	Misnumbered       // its nonce was refused
	Expired           // its deadline passed
	Refused           // the key was refused, or may not do this
	Invalid           // the request is wrong
	Redirected        // it was redirected to where it may not go
	Held              // it may have been served (HoldUnanswered)
	NoModel           // there is no such model
	Loop              // its next page is one that was read before
	Partly            // a limit refused some parts of it (PartlyHold)
	Length            // its answer was cut at the bound of its output; it is done, and no dead letter
	classes
)

var classNames = [classes]string{"", "outage", "failed", "limited", "nonce", "expired", "refused", "invalid",
	"redirect", "held", "model", "loop", "partly", "length"}

func (c Class) String() string { return classNames[c] }

// passing are the classes of requests that may succeed another time without a change.
const passing = Set(1<<Outage | 1<<Failed | 1<<Limited | 1<<Misnumbered | 1<<Expired)

// Set is a set of classes of dead letters. The zero value is empty.
type Set uint16

const (
	// All are all dead letters.
	All Set = 1<<classes - 1 - 1<<Length
	// TheExpired are the requests that expired, which are no dead letters.
	TheExpired Set = 1 << classes
)

// Parse reads a set: "outage,limited", or "all". "expired" includes the requests that expired
// without becoming dead letters. "length" are requests that are done, so "all" does not include them.
func Parse(s string) (set Set, err error) {
	for name := range strings.SplitSeq(s, ",") {
		c := slices.Index(classNames[:], name)
		switch {
		case name == "all":
			set |= All
		case c <= 0:
			return 0, fmt.Errorf("%q, expected all, or some of %s", name, strings.Join(classNames[1:], ", "))
		case Class(c) == Expired:
			set |= 1<<Expired | TheExpired
		default:
			set |= 1 << c
		}
	}
	return set, nil
}

// Names are the names of the classes in a set.
func (d Set) Names() (all []string) {
	for c := Outage; c < classes; c++ {
		if d.Has(c) {
			all = append(all, c.String())
		}
	}
	return all
}

func (d Set) Has(c Class) bool { return d>>c&1 != 0 }

// Named is the class of a result: the one that it names, or else that of its status.
func Named(name string, status int) Class {
	if c := slices.Index(classNames[:], name); c > 0 {
		return Class(c)
	}
	return OfStatus(status)
}

// OfStatus is the class of a request that an answer with this status made a dead letter.
func OfStatus(status int) Class {
	switch status {
	case 0, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout, 529:
		return Outage
	case http.StatusTooManyRequests:
		return Limited
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusProxyAuthRequired,
		http.StatusTeapot:
		return Refused
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return Invalid
	}
	switch {
	case status >= 300 && status < 400:
		return Redirected
	case status >= 400 && status < 500:
		return Invalid
	}
	return Failed
}

var differing = regexp.MustCompile(`[\w./:-]*\d[\w./:-]*`)

// Alike makes two reasons equal if they differ only in ids, numbers and times of the server.
func Alike(reason string) string {
	ours, theirs, found := strings.Cut(reason, ": ")
	if !found || !strings.HasPrefix(ours, "answered ") {
		return reason
	}
	return ours + ": " + differing.ReplaceAllString(theirs, "…")
}

// Ends counts requests that ended badly.
type Ends struct {
	Dead    [classes]int
	Lapsed  int  // requests whose duration passed in this run
	KeyHost int  // redirects in dead that were not followed, since the request has the value of a key
	Bare    int  // answers 401 in dead to requests without a credential
	Again   bool // the next run can know of them
}

// String says how many requests are dead or expired, why, and how to send them again. It is empty
// if there are none.
func (e *Ends) String() string {
	total, set := 0, Set(0)
	var parts []string
	for c := range classes {
		if n := e.Dead[c]; n > 0 {
			total += n
			set |= 1 << c
			if c != unclassed {
				parts = append(parts, fmt.Sprintf("%d %v", n, c))
			}
		}
	}
	text := fmt.Sprintf("%d dead", total)
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	flag, again := "--retry-dead", "sends those again"
	switch {
	case total == 0 && e.Lapsed == 0:
		return ""
	case total == 0:
		set, text = 1<<Expired, fmt.Sprintf("%d expired", e.Lapsed)
	case e.Lapsed > 0:
		set, text = set&passing|1<<Expired, fmt.Sprintf("%s; %d expired", text, e.Lapsed)
	case set&passing != 0:
		set &= passing
	default:
		again += ", once that is mended"
		if e.KeyHost > 0 {
			again += " (redirect: --key-host)"
		}
		if e.Bare > 0 {
			again += fmt.Sprintf(" (refused: %d had no credential; --key-env NAME and --header 'Authorization: Bearer {key}' send one)", e.Bare)
		}
	}
	if !e.Again {
		return text
	}
	var names []string
	for c := unclassed + 1; c < classes; c++ {
		if set.Has(c) {
			names = append(names, c.String())
		}
	}
	if len(names) > 0 {
		flag += "=" + strings.Join(names, ",")
	}
	if e.Lapsed > 0 {
		flag += " --renew"
	}
	return fmt.Sprintf("%s; %s %s", text, flag, again)
}
