package capture

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// some is a resolver of a world with example.com, and a named host that does not exist there.
func some() *resolver {
	return &resolver{names: &names{}, named: func(host string) bool { return strings.EqualFold(host, "api.test") },
		lookup: func(_ context.Context, host string) error {
			switch host {
			case "example.com", "www.example.com":
				return nil
			case "slow.example.com":
				return errors.New("no answer")
			}
			return &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		},
		pass: func(_ context.Context, m *dns.Msg) (*dns.Msg, error) {
			a := new(dns.Msg).SetReply(m)
			a.Answer = append(a.Answer, &dns.TXT{Hdr: dns.RR_Header{Name: m.Question[0].Name, Rrtype: dns.TypeTXT, Class: dns.ClassINET}, Txt: []string{"passed"}})
			a.Id = 0
			return a, nil
		}}
}

func TestAnswers(t *testing.T) {
	r := some()
	for _, test := range []struct {
		name string
		kind uint16
		want string
	}{
		{"example.com.", dns.TypeA, "NOERROR 198.18.0.1"},
		{"www.example.com.", dns.TypeA, "NOERROR 198.18.0.2"},
		{"EXAMPLE.com.", dns.TypeA, "NOERROR 198.18.0.1"},
		{"example.com.", dns.TypeAAAA, "NOERROR"},
		{"example.com.", dns.TypeHTTPS, "NOERROR"},
		{"nowhere.example.com.", dns.TypeA, "NXDOMAIN"},
		{"nowhere.example.com.", dns.TypeAAAA, "NXDOMAIN"},
		{"slow.example.com.", dns.TypeA, "SERVFAIL"},
		{"api.test.", dns.TypeA, "NOERROR 198.18.0.3"},
		{"2.0.18.198.in-addr.arpa.", dns.TypePTR, "NOERROR www.example.com."},
		{"9.0.18.198.in-addr.arpa.", dns.TypePTR, "NOERROR passed"},
		{"example.com.", dns.TypeTXT, "NOERROR passed"},
		{".", dns.TypeA, "NOERROR"},
	} {
		m := new(dns.Msg).SetQuestion(test.name, test.kind)
		a := r.answer(t.Context(), m)
		words := []string{dns.RcodeToString[a.Rcode]}
		for _, rr := range a.Answer {
			switch rr := rr.(type) {
			case *dns.A:
				words = append(words, rr.A.String())
			case *dns.PTR:
				words = append(words, rr.Ptr)
			case *dns.TXT:
				words = append(words, rr.Txt[0])
			}
		}
		if got := strings.Join(words, " "); got != test.want || a.Id != m.Id || !a.Response {
			t.Errorf("%s %s: %s, want %s", test.name, dns.TypeToString[test.kind], got, test.want)
		}
	}
}

// All addresses of the range are given out, each once; then no name gets another's.
func TestNamesEnd(t *testing.T) {
	n := &names{}
	seen := map[string]bool{}
	for i := 0; ; i++ {
		a, ok := n.of(fmt.Sprint(i))
		if !ok {
			if i != 131_070 {
				t.Errorf("%d names; want 131070", i)
			}
			break
		}
		if seen[a.String()] || n.name(a) != fmt.Sprint(i) {
			t.Fatalf("%v is given twice, or is %s", a, n.name(a))
		}
		seen[a.String()] = true
	}
	if a, ok := n.of("7"); !ok || n.name(a) != "7" {
		t.Error("a known name is forgotten")
	}
}

// FuzzAnswer tries packets that are no questions, or strange ones.
func FuzzAnswer(f *testing.F) {
	for _, m := range []*dns.Msg{new(dns.Msg).SetQuestion("example.com.", dns.TypeA), new(dns.Msg).SetNotify("example.com."),
		new(dns.Msg).SetQuestion("1.0.18.198.in-addr.arpa.", dns.TypePTR).SetEdns0(4096, true), {Question: make([]dns.Question, 2)}} {
		b, err := m.Pack()
		if err == nil {
			f.Add(b)
		}
	}
	r := some()
	f.Fuzz(func(t *testing.T, packet []byte) {
		m := new(dns.Msg)
		if m.Unpack(packet) != nil {
			return
		}
		a := r.answer(t.Context(), m)
		if a.Id != m.Id || !a.Response {
			t.Errorf("%v answers %v", a, m)
		}
		if b, err := a.Pack(); err != nil || new(dns.Msg).Unpack(b) != nil {
			t.Errorf("%v is no packet: %v", a, err)
		}
	})
}
