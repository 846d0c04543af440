package format

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// DeadClass is why a request became a dead letter. Each class needs another change before the request
// is worth sending again.
type DeadClass uint8

const (
	deadUnclassed   DeadClass = iota
	DeadOutage                // no answer came, or not all of it, or one of a gateway
	DeadFailed                // the server failed
	DeadLimited               // a limit refused it
	DeadMisnumbered           // its nonce was refused
	DeadExpired               // its deadline passed
	DeadRefused               // the key was refused, or may not do this
	DeadInvalid               // the request is wrong
	DeadRedirected            // it was redirected to where it may not go
	DeadHeld                  // it may have been served (HoldUnanswered)
	DeadNoModel               // there is no such model
	DeadLoop                  // its next page is one that was read before
	DeadPartly                // a limit refused some parts of it (PartlyHold)
	DeadLength                // its answer was cut at the bound of its output: most are done, and no dead letters
	DeadUnselected            // --select failed on its answer; it is done, and no dead letter
	deadClasses
)

var deadNames = [deadClasses]string{"", "outage", "failed", "limited", "nonce", "expired", "refused", "invalid",
	"redirect", "held", "model", "loop", "partly", "length", "unselected"}

func (c DeadClass) String() string { return deadNames[c] }

// passingDead are the classes of requests that may succeed another time without a change.
const passingDead = DeadSet(1<<DeadOutage | 1<<DeadFailed | 1<<DeadLimited | 1<<DeadMisnumbered | 1<<DeadExpired)

// DeadSet is a set of classes of dead letters. The zero value is empty.
type DeadSet uint16

const (
	// AllDead are all dead letters.
	AllDead DeadSet = 1<<DeadLength - 1
	// TheExpired are the requests that expired, which are no dead letters.
	TheExpired DeadSet = 1 << deadClasses
)

// ParseDead reads a set: "outage,limited", or "all". "expired" includes the requests that expired
// without becoming dead letters. "length" and "unselected" include requests that are done; "all" does not.
func ParseDead(s string) (set DeadSet, err error) {
	for name := range strings.SplitSeq(s, ",") {
		c := slices.Index(deadNames[:], name)
		switch {
		case name == "all":
			set |= AllDead
		case c <= 0:
			return 0, fmt.Errorf("%q, expected all, or some of %s", name, strings.Join(deadNames[1:], ", "))
		case DeadClass(c) == DeadExpired:
			set |= 1<<DeadExpired | TheExpired
		default:
			set |= 1 << c
		}
	}
	return set, nil
}

// Names are the names of the classes in a set.
func (d DeadSet) Names() (all []string) {
	for c := DeadOutage; c < deadClasses; c++ {
		if d.Has(c) {
			all = append(all, c.String())
		}
	}
	return all
}

func (d DeadSet) Has(c DeadClass) bool { return d>>c&1 != 0 }

// Takes reports whether the set has dead letters of a class. All of them include those whose answers were cut.
func (d DeadSet) Takes(c DeadClass) bool { return d.Has(c) || c == DeadLength && d&AllDead == AllDead }

// DeadClassOf is the class of a result: the one that it names, or else that of its status.
func DeadClassOf(name string, status int) DeadClass {
	if c := slices.Index(deadNames[:], name); c > 0 {
		return DeadClass(c)
	}
	return DeadClassOfStatus(status)
}

// DeadClassOfStatus is the class of a request that an answer with this status made a dead letter.
func DeadClassOfStatus(status int) DeadClass {
	switch status {
	case 0, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout, 529:
		return DeadOutage
	case http.StatusTooManyRequests:
		return DeadLimited
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusProxyAuthRequired,
		http.StatusTeapot:
		return DeadRefused
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return DeadInvalid
	}
	switch {
	case status >= 300 && status < 400:
		return DeadRedirected
	case status >= 400 && status < 500:
		return DeadInvalid
	}
	return DeadFailed
}

var differingParts = regexp.MustCompile(`[\w./:-]*\d[\w./:-]*`)

// AlikeReason makes two reasons equal if they differ only in ids, numbers and times of the server.
func AlikeReason(reason string) string {
	ours, theirs, found := strings.Cut(reason, ": ")
	if !found || !strings.HasPrefix(ours, "answered ") {
		return reason
	}
	return ours + ": " + differingParts.ReplaceAllString(theirs, "…")
}

// DeadEnds counts requests that ended badly.
type DeadEnds struct {
	Dead    [deadClasses]int
	Lapsed  int  // requests whose duration passed in this run
	KeyHost int  // redirects in dead that were not followed, since the request has the value of a key
	Bare    int  // answers 401 in dead to requests without a credential
	Again   bool // the next run can know of them
}

// String says how many requests are dead or expired, why, and how to send them again. It is empty
// if there are none.
func (e *DeadEnds) String() string {
	total, set := 0, DeadSet(0)
	var parts []string
	for c := range deadClasses {
		if n := e.Dead[c]; n > 0 {
			total += n
			set |= 1 << c
			if c != deadUnclassed {
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
		set, text = 1<<DeadExpired, fmt.Sprintf("%d expired", e.Lapsed)
	case e.Lapsed > 0:
		set, text = set&passingDead|1<<DeadExpired, fmt.Sprintf("%s; %d expired", text, e.Lapsed)
	case set&passingDead != 0:
		set &= passingDead
	case set == 1<<DeadHeld:
		again += ", although the server may have served them: they were sent, and no answer came"
	default:
		again += ", once the cause that their errors name is gone"
		if set.Has(DeadHeld) {
			again += " (held: the server may have served them, and no answer came)"
		}
		if set.Has(DeadLength) {
			again += " (length: with a larger --max-tokens)"
		}
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
	for c := deadUnclassed + 1; c < deadClasses; c++ {
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
