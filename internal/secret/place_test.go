package secret

import (
	"net/url"
	"testing"
)

func parse(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Where keys may go that were meant for a place, and where a redirect from there may take them.
func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		place, to  string
		have, keep bool // named in the input; by a redirect from https://api.example.com/
	}{
		{"api.example.com", "https://api.example.com/x", true, true},
		{"api.example.com", "https://API.example.com.:443/x", true, true},
		{"api.example.com", "http://api.example.com/x", true, false},
		{"api.example.com", "https://api.example.com:8443/x", false, false},
		{"api.example.com", "https://eu.api.example.com/x", false, false},
		{"api.example.com", "https://example.com/", false, false},
		{"api.example.com", "https://api.example.com@evil.example/", false, false},
		{"api.example.com", "https://api.example.com.evil.example/", false, false},
		{"api.example.com:8443", "https://api.example.com:8443/x", true, true},
		{"api.example.com:8443", "https://api.example.com/x", false, false},
		{"https://api.example.com", "https://api.example.com/", true, true},
		{"https://api.example.com", "http://api.example.com/", false, false},
		{"http://api.example.com", "http://api.example.com/", true, true},
		{"http://api.example.com", "https://api.example.com/", true, true},
		{"http://api.example.com:8080", "https://api.example.com/", false, false},
		{"http://api.example.com:8080", "http://api.example.com:8080/", true, true},
		{"127.0.0.1:8080", "http://127.0.0.1:8080/", true, false},
		{"127.0.0.1:8080", "http://localhost:8080/", false, false},
		{"[::1]:8080", "http://[::1]:8080/", true, false},
		{"[::1]", "http://[::1]/", true, false},
	} {
		p, err := ParsePlace(c.place)
		if err != nil {
			t.Errorf("%s: %v", c.place, err)
			continue
		}
		all := Places{p}
		if to := parse(t, c.to); all.Have(to) != c.have || all.Keep(parse(t, "https://api.example.com/"), to) != c.keep {
			t.Errorf("%s and %s: have %v, keep %v; want %v, %v", c.place, c.to, all.Have(to), all.Keep(parse(t, "https://api.example.com/"), to), c.have, c.keep)
		}
		if again, err := ParsePlace(p.String()); err != nil || again != p {
			t.Errorf("%s is written as %s, which is read as %+v, %v", c.place, p, again, err)
		}
	}
	for _, bad := range []string{"", " ", "/x", "api.example.com/v1", "ftp://h", "https://u:p@h", "h:", "*.example.com", "https://", "h?x", "h#x", "a b", ":80", "::1"} {
		if p, err := ParsePlace(bad); err == nil {
			t.Errorf("%q is read as %v", bad, p)
		}
	}
	if (Places{{}}).Have(parse(t, "http:///x")) || (Places{}).Have(parse(t, "http://h")) {
		t.Error("nowhere is somewhere")
	}
	for from, want := range map[string]string{"https://H.example:443/x?y": "https://h.example", "http://h:8080": "http://h:8080", "http://[::1]/": "http://[::1]"} {
		if got := PlaceOf(parse(t, from)); got.String() != want || !(Places{got}).Have(parse(t, from)) {
			t.Errorf("%s is at %s, want %s", from, got, want)
		}
	}
}

// The parts of a request that must not go to other servers.
func TestStaysHome(t *testing.T) {
	for _, c := range []struct {
		name, value string
		stays       bool
	}{
		{"Accept", "application/json", false},
		{"Content-Type", "text/plain", false},
		{"User-Agent", "paceline", false},
		{"Idempotency-Key", "7", false},
		{"Idempotency-Key", keyA, true},
		{"Authorization", "x", true},
		{"Proxy-Authorization", "x", true},
		{"Cookie", "x", true},
		{"cookie2", "x", true},
		{"X-Api-Key", "x", true},
		{"Private-Token", "x", true},
		{"X-Amz-Security-Token", "x", true},
		{"DD-APPLICATION-KEY", "x", true},
		{"OK-ACCESS-PASSPHRASE", "x", true},
		{"OK-ACCESS-SIGN", "x", true},
		{"Api-Sign", "x", true},
		{"X_BAPI_SIGN", "x", true},
		{"X-GitHub-OTP", "x", true},
		{"X-Design", "x", false},
		{"X-Bypass-Cache", "x", false},
		{"X-Custom", "id=" + keyA, true},
		{"X-Custom", "Basic bWU6czNjci9ldCt2NGx1ZVg5", true},
		{"X-Custom", "ollama", true},
		{"X-Custom", "Bearer ollama", true},
		{"X-Custom", "ollama2", false},
	} {
		if got := both().StaysHome(c.name, c.value); got != c.stays {
			t.Errorf("%s: %s stays at home: %v", c.name, c.value, got)
		}
	}
	for query, want := range map[string]string{
		"":                            "",
		"a=1&&b=%20":                  "a=1&&b=%20",
		"a=1&k=s3cr%2Fet%2Bv4lueX9&b": "a=1&b",
		"k=s3cr%252Fet%252Bv4lueX9":   "",
		"s3cr/et+v4lueX9=1&x=2":       "x=2",
		"model=ollama&x=2":            "x=2",
		"q=run+ollama+now&token=bWU6czNjci9ldCt2NGx1ZVg5": "q=run+ollama+now",
	} {
		if got := both().WithoutKeys(query); got != want {
			t.Errorf("%s without keys is %s, want %s", query, got, want)
		}
	}
}
