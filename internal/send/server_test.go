package send

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// act is what a server does with a connection, when a request of it has arrived or before.
type act int

const (
	answer      act = iota
	answerClose     // answers, says nothing of closing, and closes
	closeRead       // reads the request and closes
	resetRead       // reads the request and resets
	half            // answers with half of a header
	stall           // never answers
	closeFirst      // closes when the first byte is there
	closeByte       // resets then
	early           // answers and closes before the body is there; over HTTP/2: says that all is well and to go elsewhere
	refuse          // HTTP/2: REFUSED_STREAM
	goAway          // HTTP/2: GOAWAY, and this stream was not processed
	protocol        // HTTP/2: RST_STREAM with PROTOCOL_ERROR
	acts
)

// server counts the arrivals of requests by their id, and does as its script says: next is asked once per request.
type server struct {
	ln   net.Listener
	h2   bool
	next func() act

	mu       sync.Mutex
	arrivals map[string]int
	conns    map[net.Conn]bool
	accepted int
	closed   bool
	done     chan struct{}
	all      sync.WaitGroup
}

// serve starts a server: over TLS if t is not nil.
func serve(tb testing.TB, t *tls.Config, h2 bool, next func() act) *server {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &server{ln: ln, h2: h2, next: next, arrivals: map[string]int{}, conns: map[net.Conn]bool{}, done: make(chan struct{})}
	s.all.Go(func() {
		for {
			raw, err := ln.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[raw] = true
			s.accepted++
			if s.closed {
				raw.Close()
			}
			s.mu.Unlock()
			s.all.Go(func() {
				defer func() {
					raw.Close()
					s.mu.Lock()
					defer s.mu.Unlock()
					delete(s.conns, raw)
				}()
				c := raw
				if t != nil {
					c = tls.Server(raw, t)
				}
				if h2 {
					s.http2(c, raw)
				} else {
					s.http1(c, raw)
				}
			})
		}
	})
	tb.Cleanup(s.close)
	return s
}

func (s *server) close() {
	s.mu.Lock()
	if !s.closed {
		close(s.done)
		s.closed = true
	}
	s.ln.Close()
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.all.Wait()
}

func (s *server) arrived(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrivals[id]++
}

func (s *server) came(id int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.arrivals[idOf(id)]
}

// total returns how many arrived, and how many of those more than once.
func (s *server) total() (n, twice int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.arrivals {
		n += k
		twice += min(k-1, 1)
	}
	return n, twice
}

func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		t.SetLinger(0)
	}
	c.Close()
}

func (s *server) http1(c, raw net.Conn) {
	in := bufio.NewReader(c)
	for {
		if _, err := in.Peek(1); err != nil {
			return
		}
		do := s.next()
		switch do {
		case closeFirst:
			return
		case closeByte:
			reset(raw)
			return
		}
		q, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		s.arrived(q.Header.Get("X-Id"))
		ok := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
		if q.Method == http.MethodHead {
			ok = strings.TrimSuffix(ok, "ok")
		}
		if do == early {
			fmt.Fprint(c, ok)
			return
		}
		if q.Header.Get("Expect") != "" {
			fmt.Fprint(c, "HTTP/1.1 100 Continue\r\n\r\n")
		}
		if _, err := io.Copy(io.Discard, q.Body); err != nil {
			return
		}
		switch do {
		case closeRead:
			return
		case resetRead:
			reset(raw)
			return
		case half:
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Le")
			return
		case stall:
			<-s.done
			return
		}
		fmt.Fprint(c, ok)
		if do == answerClose {
			return
		}
	}
}

// The parts of RFC 9113 in use.
const (
	frameData, frameHeaders, frameReset, frameSettings, framePing, frameGoAway, frameWindow = 0, 1, 3, 4, 6, 7, 8
	flagEnd, flagAck, flagEndHeaders                                                        = 1, 1, 4
	codeProtocol, codeRefused                                                               = 1, 7
)

func frame(c io.Writer, kind, flags byte, stream uint32, payload []byte) {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	b = append(b, flags)
	b = binary.BigEndian.AppendUint32(b, stream)
	c.Write(append(b, payload...))
}

func words(v ...uint32) (b []byte) {
	for _, w := range v {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}

// http2 is as little of a server as is needed. Of a request's fields it finds the id, which is
// never compressed: its table is empty, and no character of it would be shorter in Huffman's code.
func (s *server) http2(c, raw net.Conn) {
	in := bufio.NewReader(c)
	if _, err := io.ReadFull(in, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	frame(c, frameSettings, 0, 0, append([]byte{0, 1}, words(0)...)) // SETTINGS_HEADER_TABLE_SIZE
	last := uint32(0)
	doing := map[uint32]act{}
	for {
		var h [9]byte
		if _, err := io.ReadFull(in, h[:]); err != nil {
			return
		}
		payload := make([]byte, int(h[0])<<16|int(h[1])<<8|int(h[2]))
		if _, err := io.ReadFull(in, payload); err != nil {
			return
		}
		kind, flags, stream := h[3], h[4], binary.BigEndian.Uint32(h[5:])
		switch kind {
		case frameSettings:
			if flags&flagAck == 0 {
				frame(c, frameSettings, flagAck, 0, nil)
			}
			continue
		case framePing:
			if flags&flagAck == 0 {
				frame(c, framePing, flagAck, 0, payload)
			}
			continue
		case frameHeaders:
			s.arrived(idIn(payload))
			doing[stream] = s.next()
			switch doing[stream] { // at the header
			case closeFirst:
				return
			case refuse:
				frame(c, frameReset, 0, stream, words(codeRefused))
			case protocol:
				frame(c, frameReset, 0, stream, words(codeProtocol))
			case goAway:
				frame(c, frameGoAway, 0, 0, words(last, 0))
				return
			default:
				if flags&flagEnd == 0 { // it may be waiting for that
					frame(c, frameHeaders, flagEndHeaders, stream, []byte("\x08\x03100")) // :status 100
				}
			}
			last = stream
		case frameData:
			if n := uint32(len(payload)); n > 0 {
				frame(c, frameWindow, 0, 0, words(n))
				frame(c, frameWindow, 0, stream, words(n))
			}
		default:
			continue
		}
		if flags&flagEnd == 0 {
			continue
		}
		switch doing[stream] { // at the end of the request
		case closeRead, half, closeByte:
			return
		case resetRead:
			reset(raw)
			return
		case early:
			frame(c, frameGoAway, 0, 0, words(last, 0))
		case refuse, protocol, stall:
			continue
		}
		frame(c, frameHeaders, flagEnd|flagEndHeaders, stream, []byte{0x88}) // :status 200
		if doing[stream] == answerClose {
			return
		}
	}
}

const digits = "!#$&'*+?@^"

// idOf returns an id that no compression touches.
func idOf(n int) string {
	s := strconv.Itoa(n)
	return "((" + strings.Map(func(r rune) rune { return rune(digits[r-'0']) }, s) + "))"
}

func idIn(fields []byte) string {
	from, to := bytes.Index(fields, []byte("((")), bytes.Index(fields, []byte("))"))
	if from < 0 || to < from {
		return "no id"
	}
	return string(fields[from : to+2])
}

// tlsConfigs are those of a server and its clients.
func tlsConfigs(protocols ...string) (server, client *tls.Config) {
	certificate.Do(func() { // with a key that is quick to sign with: the tests shake hands often
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			panic(err)
		}
		c := &x509.Certificate{
			SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		}
		der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
		if err != nil {
			panic(err)
		}
		leaf, _ := x509.ParseCertificate(der)
		pool := x509.NewCertPool()
		pool.AddCert(leaf)
		certified = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
		trusting = &tls.Config{RootCAs: pool}
	})
	return &tls.Config{Certificates: []tls.Certificate{certified}, NextProtos: protocols}, trusting.Clone()
}

var (
	certificate sync.Once
	certified   tls.Certificate
	trusting    *tls.Config
)
