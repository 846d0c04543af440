package http1

import (
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/paceline-go/paceline/internal/send/httptext"
)

// mostRequest is how many bytes a request may have. So few are taken by the system at once; while more are being written somebody else would
// have to read, as the answer may come early.
const mostRequest = 8 << 10

// Takes says whether a Client can send a request. If not, net/http has to.
func (c *Client) Takes(req *http.Request, body []byte) bool {
	u := req.URL
	if !supported || u == nil || u.Scheme != "http" || u.Opaque != "" || len(body) > mostRequest || !isHost(req.Host) || !isHost(u.Host) || u.Hostname() == "" || req.Close {
		return false
	}
	if req.Method == "" || req.Method == http.MethodConnect || !httptext.IsFieldName(req.Method) {
		return false
	}
	size := len(u.Path) + len(u.RawQuery)
	for name, all := range req.Header {
		if notOurs[name] || !httptext.IsFieldName(name) {
			return false
		}
		for _, v := range all {
			if size += len(name) + len(v); !httptext.IsFieldValue(v) {
				return false
			}
		}
	}
	for i := range len(u.RawQuery) {
		if ch := u.RawQuery[i]; ch <= ' ' || ch == 0x7f {
			return false
		}
	}
	if size > mostRequest {
		return false
	}
	if c.Proxy == nil {
		return true
	}
	proxy, err := c.Proxy(req)
	return proxy == nil && err == nil
}

// notOurs are header fields to which net/http gives a meaning of its own.
var notOurs = map[string]bool{
	"Connection": true, "Content-Length": true, "Expect": true, "Host": true, "Keep-Alive": true, "Proxy-Connection": true, "Te": true,
	"Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// isHost says whether a host is sent as it is written. net/http converts hosts in other alphabets, and leaves out zones.
func isHost(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._:[]", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// addressOf is the host and port that a request is sent to.
func addressOf(req *http.Request) string {
	host := req.URL.Host
	if port := req.URL.Port(); port != "" && host[len(host)-1] != ']' {
		return host
	}
	return net.JoinHostPort(req.URL.Hostname(), "80")
}

// asksGzip says whether net/http would ask for a compressed answer.
func asksGzip(req *http.Request) bool {
	return req.Header.Get("Accept-Encoding") == "" && req.Header.Get("Range") == "" && req.Method != http.MethodHead
}

// appendHead appends everything before the body, byte for byte as net/http writes it.
func appendHead(b []byte, req *http.Request, length int) []byte {
	b = append(append(b, req.Method...), ' ')
	b = append(b, req.URL.RequestURI()...)
	b = append(append(b, " HTTP/1.1\r\nHost: "...), req.Host...)
	b = append(b, "\r\n"...)
	agent := "Go-http-client/1.1"
	if all, is := req.Header["User-Agent"]; is {
		if agent = ""; len(all) > 0 {
			agent = all[0]
		}
	}
	if agent != "" {
		b = appendField(b, "User-Agent", agent)
	}
	if length > 0 || req.Method == http.MethodPost || req.Method == http.MethodPut || req.Method == http.MethodPatch {
		b = strconv.AppendInt(append(b, "Content-Length: "...), int64(length), 10)
		b = append(b, "\r\n"...)
	}
	var room [16]string
	names := room[:0]
	for name := range req.Header {
		if name != "User-Agent" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for _, v := range req.Header[name] {
			b = appendField(b, name, v)
		}
	}
	if asksGzip(req) {
		b = append(b, "Accept-Encoding: gzip\r\n"...)
	}
	return append(b, "\r\n"...)
}

func appendField(b []byte, name, value string) []byte {
	b = append(append(b, name...), ": "...)
	return append(append(b, strings.Trim(value, " \t")...), "\r\n"...)
}
