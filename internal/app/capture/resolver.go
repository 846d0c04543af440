package capture

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/miekg/dns"
)

// resolver answers a program's questions for names. Each name that exists gets an address of its own;
// which one it really has does not matter, since the proxy connects. Questions for anything but
// addresses go to the system's servers.
type resolver struct {
	names  *names
	named  func(host string) bool // names that exist by themselves: the upstreams'
	lookup func(ctx context.Context, host string) error
	pass   func(ctx context.Context, m *dns.Msg) (*dns.Msg, error)
}

const (
	// ttl is how long an answer counts, in seconds. A name keeps its address for the whole run.
	ttl = 60
	// resolveIn is how long a question may take. Programs ask again after 5 s.
	resolveIn = 4 * time.Second
	// size is the largest answer by UDP that all networks take (DNS flag day 2020).
	size = 1232
)

// ServeDNS implements dns.Handler.
func (r *resolver) ServeDNS(w dns.ResponseWriter, m *dns.Msg) {
	ctx, cancel := context.WithTimeout(context.Background(), resolveIn)
	defer cancel()
	a := r.answer(ctx, m)
	if _, stream := w.RemoteAddr().(*net.TCPAddr); !stream {
		most := dns.MinMsgSize
		if o := m.IsEdns0(); o != nil {
			most = min(size, max(int(o.UDPSize()), most))
		}
		a.Truncate(most)
	}
	_ = w.WriteMsg(a)
}

// answer answers one question.
func (r *resolver) answer(ctx context.Context, m *dns.Msg) *dns.Msg {
	a := new(dns.Msg).SetReply(m)
	a.RecursionAvailable = true
	switch {
	case m.Opcode != dns.OpcodeQuery:
		a.Rcode = dns.RcodeNotImplemented
		return a
	case len(m.Question) != 1:
		a.Rcode = dns.RcodeFormatError
		return a
	case m.Question[0].Qclass != dns.ClassINET:
		a.Rcode = dns.RcodeRefused
		return a
	}
	if m.IsEdns0() != nil {
		a.SetEdns0(size, false)
	}
	switch q := m.Question[0]; q.Qtype {
	case dns.TypeA, dns.TypeAAAA, dns.TypeHTTPS, dns.TypeSVCB:
		a.Rcode = r.address(ctx, a, q)
	case dns.TypePTR:
		if name := r.names.pointed(q.Name); name != "" {
			a.Answer = append(a.Answer, &dns.PTR{Hdr: header(q), Ptr: dns.Fqdn(name)})
			return a
		}
		return r.passed(ctx, m, a)
	default:
		return r.passed(ctx, m, a)
	}
	return a
}

// address answers with the address of a name. Of the other types that a name may have none is there:
// an address of IPv6 would go another way, and HTTPS records lead to HTTP/3.
func (r *resolver) address(ctx context.Context, a *dns.Msg, q dns.Question) (code int) {
	host := q.Name[:len(q.Name)-1]
	if host == "" {
		return dns.RcodeSuccess
	}
	if !r.named(host) && !r.names.has(host) {
		if err := r.lookup(ctx, host); err != nil {
			if missing, ok := errors.AsType[*net.DNSError](err); ok && missing.IsNotFound {
				return dns.RcodeNameError
			}
			return dns.RcodeServerFailure
		}
	}
	at, ok := r.names.of(host)
	if !ok {
		return dns.RcodeServerFailure
	}
	if q.Qtype == dns.TypeA {
		a.Answer = append(a.Answer, &dns.A{Hdr: header(q), A: at.AsSlice()})
	}
	return dns.RcodeSuccess
}

func header(q dns.Question) dns.RR_Header {
	return dns.RR_Header{Name: q.Name, Rrtype: q.Qtype, Class: q.Qclass, Ttl: ttl}
}

// passed asks the system's servers.
func (r *resolver) passed(ctx context.Context, m, failed *dns.Msg) *dns.Msg {
	a, err := r.pass(ctx, m)
	if err != nil || a == nil {
		failed.Rcode = dns.RcodeServerFailure
		return failed
	}
	a.Id = m.Id
	return a
}

// system asks the first server of resolv.conf that answers.
func system(ctx context.Context, m *dns.Msg) (*dns.Msg, error) {
	c, err := dns.ClientConfigFromFile("/etc/resolv.conf")
	if err != nil {
		return nil, err
	}
	err = errors.New("no server")
	for _, server := range c.Servers {
		var a *dns.Msg
		at := net.JoinHostPort(server, c.Port)
		if a, _, err = new(dns.Client).ExchangeContext(ctx, m, at); err == nil && a.Truncated {
			a, _, err = (&dns.Client{Net: "tcp"}).ExchangeContext(ctx, m, at)
		}
		if err == nil {
			return a, nil
		}
	}
	return nil, err
}

// exists looks a name up as the system does.
func exists(ctx context.Context, host string) error {
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	_, err := net.DefaultResolver.LookupHost(ctx, host)
	return err
}
