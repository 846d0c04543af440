package batch

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/dispatch"
	"github.com/paceline-go/paceline/limit"
)

// A name or certificate is wrong only until its host has answered, and only of a host that the input names.
func TestWhichHostIsWrong(t *testing.T) {
	for _, c := range []struct {
		name  string
		known []known
		kind  limit.Sight
		wrong bool
	}{
		{"no such name", []known{named}, limit.NoName, true},
		{"a wrong certificate", []known{named, named}, limit.BadCertificate, true},
		{"it has answered", []known{named, answered}, limit.NoName, false},
		{"where a redirect leads", nil, limit.NoName, false},
		{"it refuses", []known{named}, limit.Unreachable, false},
		{"it is broken", []known{named}, limit.Broken, false},
	} {
		var said []string
		r, err := New(Config{Out: "-", Stdout: new(strings.Builder), Notice: func(s string) { said = append(said, s) }})
		if err == nil {
			err = r.Open()
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range c.known {
			r.hosts.note("https://a.test", k)
		}
		r.outage(dispatch.HostInfo{Host: "https://a.test", Down: true, Kind: c.kind, Reason: "dial tcp: lookup a.test: no such host"})
		if wrong := errors.Is(r.course.wrong, ErrHost); wrong != c.wrong || wrong == (len(said) == 1) || r.course.isStopped() != wrong {
			t.Errorf("%s: %v, said %q", c.name, r.course.wrong, said)
		}
		r.outage(dispatch.HostInfo{Host: "https://a.test", Lasted: 5040 * time.Millisecond})
		if last := said[len(said)-1]; last != "a.test is back after 5s" {
			t.Errorf("%s: said %q", c.name, last)
		}
	}
}

func TestWhyInWords(t *testing.T) {
	for want, h := range map[string]dispatch.HostInfo{
		"connection refused":                                               {Kind: limit.Unreachable, Reason: "dial tcp 127.0.0.1:9: connect: connection refused"},
		"its name cannot be resolved: no such host":                        {Kind: limit.NoName, Reason: "dial tcp: lookup a.test: no such host"},
		"the TLS handshake fails: certificate signed by unknown authority": {Kind: limit.BadCertificate, Reason: "tls: failed to verify certificate: x509: certificate signed by unknown authority"},
		"this machine has no files left: too many open files":              {Kind: limit.NoFiles, Reason: "dial tcp 127.0.0.1:9: socket: too many open files"},
		"answered 500 Internal Server Error":                               {Kind: limit.Broken, Reason: "answered 500 Internal Server Error"},
		"no answer within 30s":                                             {Kind: limit.Silent, Reason: "no answer: no answer within 30s"},
		"":                                                                 {},
	} {
		if got := inWords(&h); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
