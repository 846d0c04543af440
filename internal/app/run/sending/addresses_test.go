package sending

import "testing"

// Ports differ, and stay out of errors.
func TestWithoutAddresses(t *testing.T) {
	for msg, want := range map[string]string{
		"dial tcp 127.0.0.1:9: connect: connection refused":                               "connect: connection refused",
		"read tcp [::1]:40612->[::1]:80: read: connection reset by peer":                  "read: connection reset by peer",
		"dial tcp: lookup a.test on 127.0.0.53:53: no such host":                          "lookup a.test: no such host",
		"lookup a.test on 10.0.0.1:53: read udp 10.0.0.7:39182->10.0.0.1:53: i/o timeout": "lookup a.test: i/o timeout",
		"proxyconnect tcp: dial tcp 10.0.0.1:3128: connect: no route to host":             "proxyconnect tcp: connect: no route to host",
		"malformed HTTP response \"\\x15\\x03\"":                                          "malformed HTTP response \"\\x15\\x03\"",
	} {
		if got := withoutAddresses(msg); got != want {
			t.Errorf("%s\n got %s\nwant %s", msg, got, want)
		}
	}
}
