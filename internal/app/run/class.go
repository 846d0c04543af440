package run

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
)

// class is why a request became a dead letter. Each class needs another change before the request
// is worth sending again.
type class uint8

const (
	unclassed   class = iota
	outage            // no answer came, or not all of it, or one of a gateway
	failed            // the server failed
	limited           // a limit refused it
	misnumbered       // its nonce was refused
	expired           // its deadline passed
	refused           // the key was refused, or may not do this
	invalid           // the request is wrong
	redirected        // it was redirected to where it may not go
	held              // it may have been served (HoldUnanswered)
	noModel           // there is no such model
	loop              // its next page is one that was read before
	partly            // a limit refused some parts of it (PartlyHold)
	classes
)

var classNames = [classes]string{"", "outage", "failed", "limited", "nonce", "expired", "refused", "invalid",
	"redirect", "held", "model", "loop", "partly"}

func (c class) String() string { return classNames[c] }

// passing are the classes of requests that may succeed another time without a change.
const passing = Dead(1<<outage | 1<<failed | 1<<limited | 1<<misnumbered | 1<<expired)

// Dead is a set of classes of dead letters. The zero value is empty.
type Dead uint16

const (
	// AllDead are all dead letters.
	AllDead Dead = 1<<classes - 1
	// theExpired are the requests that expired, which are no dead letters.
	theExpired Dead = 1 << classes
)

// ParseDead reads a set: "outage,limited", or "all". "expired" includes the requests that expired
// without becoming dead letters.
func ParseDead(s string) (set Dead, err error) {
	for name := range strings.SplitSeq(s, ",") {
		c := slices.Index(classNames[:], name)
		switch {
		case name == "all":
			set |= AllDead
		case c <= 0:
			return 0, fmt.Errorf("%q, expected all, or some of %s", name, strings.Join(classNames[1:], ", "))
		case class(c) == expired:
			set |= 1<<expired | theExpired
		default:
			set |= 1 << c
		}
	}
	return set, nil
}

func (d Dead) has(c class) bool { return d>>c&1 != 0 }

// classNamed is the class of a result: the one that it names, or else that of its status.
func classNamed(name string, status int) class {
	if c := slices.Index(classNames[:], name); c > 0 {
		return class(c)
	}
	return classOfStatus(status)
}

// classOfStatus is the class of a request that an answer with this status made a dead letter.
func classOfStatus(status int) class {
	switch status {
	case 0, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout, 529:
		return outage
	case http.StatusTooManyRequests:
		return limited
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusProxyAuthRequired,
		http.StatusTeapot:
		return refused
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return invalid
	}
	switch {
	case status >= 300 && status < 400:
		return redirected
	case status >= 400 && status < 500:
		return invalid
	}
	return failed
}

// classOf is the class that a request would have as a dead letter, by its latest attempt.
func classOf(j *job, ans *pool.Answer) class {
	switch res := &j.res; {
	case j.held:
		return held
	case j.parts != nil && ans.Invalid:
		return partly
	case j.astray:
		return redirected
	case j.noModel:
		return noModel
	case res.err != nil:
		return outage
	case ans.Misordered:
		return misnumbered
	case ans.Result == limit.Limited && !ans.Invalid:
		return limited
	case res.cut, ans.Result == limit.Limited: // its answer, or the request itself, is too large
		return invalid
	}
	if j.unlike {
		return invalid
	}
	return classOfStatus(j.res.status)
}

// deadOf is the class of a dead letter.
func deadOf(j *job, e *pool.Ended) class {
	if e.Reason != j.reason { // the queue gave the reason: a deadline
		return expired
	}
	return j.class
}

var (
	addresses = regexp.MustCompile(`\b(dial|read|write) (tcp|udp)[46]?( [^ ]+)?: | on [^ ]+:\d+\b`)
	differing = regexp.MustCompile(`[\w./:-]*\d[\w./:-]*`)
)

// withoutAddresses removes from an error of package net the addresses, whose ports differ each
// time.
func withoutAddresses(msg string) string { return addresses.ReplaceAllString(msg, "") }

// alike makes two reasons equal if they differ only in ids, numbers and times of the server.
func alike(reason string) string {
	ours, theirs, found := strings.Cut(reason, ": ")
	if !found || !strings.HasPrefix(ours, "answered ") {
		return reason
	}
	return ours + ": " + differing.ReplaceAllString(theirs, "…")
}

// ends counts requests that ended badly.
type ends struct {
	dead    [classes]int
	lapsed  int  // requests whose duration passed in this run
	keyHost int  // redirects in dead that were not followed, since the request has the value of a key
	again   bool // the next run can know of them
}

// String says how many requests are dead or expired, why, and how to send them again. It is empty
// if there are none.
func (e *ends) String() string {
	total, set := 0, Dead(0)
	var parts []string
	for c := range classes {
		if n := e.dead[c]; n > 0 {
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
	case total == 0 && e.lapsed == 0:
		return ""
	case total == 0:
		set, text = 1<<expired, fmt.Sprintf("%d expired", e.lapsed)
	case e.lapsed > 0:
		set, text = set&passing|1<<expired, fmt.Sprintf("%s; %d expired", text, e.lapsed)
	case set&passing != 0:
		set &= passing
	default:
		again += ", once that is mended"
		if e.keyHost > 0 {
			again += " (redirect: --key-host)"
		}
	}
	if !e.again {
		return text
	}
	var names []string
	for c := unclassed + 1; c < classes; c++ {
		if set.has(c) {
			names = append(names, c.String())
		}
	}
	if len(names) > 0 {
		flag += "=" + strings.Join(names, ",")
	}
	if e.lapsed > 0 {
		flag += " --renew"
	}
	return fmt.Sprintf("%s; %s %s", text, flag, again)
}
