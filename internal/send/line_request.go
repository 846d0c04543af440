package send

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
)

// mostOfBody bounds a body that is written before the answer is read. So much fits into the buffers of
// the system, whatever the server does meanwhile.
const mostOfBody = 8 << 10

// plain reports whether a line takes a request, and no proxy. net/http writes the others, and refuses those
// that make no sense.
func (s *lines) plain(req *http.Request) bool {
	//lint:ignore SA1019 net/http heeds it
	if s.clear && req.URL.Scheme == "https" || req.Header == nil || req.Cancel != nil || req.Close || req.Trailer != nil || req.TransferEncoding != nil ||
		!isHost(req.URL.Host) || req.Host != "" && req.Host != req.URL.Host && !isHost(req.Host) {
		return false
	}
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		return false
	}
	switch {
	case req.Body == nil || req.Body == http.NoBody:
		if req.ContentLength != 0 {
			return false
		}
	case req.GetBody == nil || req.ContentLength <= 0 || req.ContentLength > mostOfBody:
		return false
	}
	for name, values := range req.Header {
		switch name {
		case "User-Agent":
			if len(values) == 1 && !hasControl(values[0]) {
				continue
			}
			return false
		case "Connection", "Expect", "Upgrade":
			return false
		}
		if !isToken(name) {
			return false
		}
		if slices.ContainsFunc(values, hasControl) {
			return false
		}
	}
	if s.from.Proxy != nil {
		if via, err := s.from.Proxy(req); via != nil || err != nil {
			return false
		}
	}
	return true
}

// isToken reports whether s is the name of a field, of letters, digits and hyphens. Other characters are rare.
func isToken(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; (c < 'a' || c > 'z') && (s[i] < '0' || s[i] > '9') && s[i] != '-' {
			return false
		}
	}
	return s != ""
}

// hasControl reports whether s has a character that no field and no URL may have. Of a field, net/http takes a tab.
func hasControl(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f {
			return true
		}
	}
	return false
}

// isHost reports whether s is a host with or without a port, of ASCII, and not of IPv6 with a zone.
func isHost(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '-' <= c && c <= ':' && c != '/', c == '[', c == ']':
		default:
			return false
		}
	}
	return s != ""
}

// isReplayable reports whether net/http would send a request again.
func isReplayable(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return req.Header["Idempotency-Key"] != nil || req.Header["X-Idempotency-Key"] != nil
}

// composed are the fields that compose writes itself, or not at all.
var composed = map[string]bool{"Host": true, "User-Agent": true, "Content-Length": true, "Transfer-Encoding": true,
	"Trailer": true}

// compose makes out the bytes of a request, those that an http.Transport would write.
func (l *line) compose(req *http.Request) error {
	target := req.URL.RequestURI()
	if hasControl(target) {
		return errors.New("can't write control character in Request.URL") // in net/http's words
	}
	l.out.Reset()
	agent := "Go-http-client/1.1"
	agents, given := req.Header["User-Agent"]
	if given {
		agent = agents[0]
	}
	for _, s := range [...]string{req.Method, " ", target, " HTTP/1.1\r\nHost: ", cmp.Or(req.Host, req.URL.Host), "\r\n"} {
		l.out.WriteString(s)
	}
	if agent != "" {
		for _, s := range [...]string{"User-Agent: ", textproto.TrimString(agent), "\r\n"} {
			l.out.WriteString(s)
		}
	}
	hasBody := req.Body != nil && req.Body != http.NoBody
	if hasBody || req.Method == http.MethodPost || req.Method == http.MethodPut || req.Method == http.MethodPatch {
		l.out.WriteString("Content-Length: ")
		l.out.Write(strconv.AppendInt(l.out.AvailableBuffer(), req.ContentLength, 10))
		l.out.WriteString("\r\n")
	}
	if len(req.Header) > 1 || !given {
		if err := req.Header.WriteSubset(&l.out, composed); err != nil {
			return err
		}
	}
	if !l.lines.from.DisableCompression && req.Header.Get("Accept-Encoding") == "" && req.Method != http.MethodHead && req.Header.Get("Range") == "" {
		l.out.WriteString("Accept-Encoding: gzip\r\n")
	}
	l.out.WriteString("\r\n")
	if !hasBody {
		return nil
	}
	body, err := req.GetBody()
	if err != nil {
		return err
	}
	defer body.Close()
	if n, err := io.Copy(&l.out, body); err != nil || n != req.ContentLength {
		return fmt.Errorf("send: the body has %d bytes, and ContentLength is %d: %w", n, req.ContentLength, err)
	}
	return nil
}
