package auth

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"
)

var wall = time.Date(2026, 7, 3, 14, 0, 0, 0, time.UTC)

func jwt(claims string) string {
	return "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

func TestRead(t *testing.T) {
	hour := wall.Add(time.Hour)
	inHour := jwt(`{"exp":1783090800}`)
	if hour.Unix() != 1783090800 {
		t.Fatal(hour.Unix())
	}
	for _, c := range []struct {
		name, reply string
		want        Token
		wrong       string
	}{
		{"plain", "ya29.a0Af\n", Token{"ya29.a0Af", 0}, ""},
		{"plain, Windows", "  abc\r\n", Token{"abc", 0}, ""},
		{"a JWT", inHour + "\n", Token{inHour, time.Hour}, ""},
		{"a JWT without an end", jwt(`{"iat":1}`), Token{jwt(`{"iat":1}`), 0}, ""},
		{"a JWT that has expired", jwt(`{"exp":1783087199}`), Token{jwt(`{"exp":1783087199}`), -time.Second}, ""},
		{"three parts that are no JWT", "a.b.c", Token{"a.b.c", 0}, ""},
		{"an OAuth server", `{"access_token":"abc","token_type":"Bearer","expires_in":3600}`, Token{"abc", time.Hour}, ""},
		{"Azure", `{"accessToken":"abc","expiresOn":"2026-07-03 17:00:00.000000","expires_on":1783090800,"subscription":null}`, Token{"abc", time.Hour}, ""},
		{"a number in quotes", `{"access_token":"abc","expires_in":"3600"}`, Token{"abc", time.Hour}, ""},
		{"gcloud's helper", `{"configuration":{},"credential":{"access_token":"abc","token_expiry":"2026-07-03T15:00:00Z"}}`, Token{"abc", time.Hour}, ""},
		{"kubectl's plug-ins", `{"kind":"ExecCredential","status":{"expirationTimestamp":"2026-07-03T16:00:00+01:00","token":"abc"}}`, Token{"abc", time.Hour}, ""},
		{"aws", `{"authorizationToken":"abc","expiration":"2026-07-03T15:00:00.000000+00:00"}`, Token{"abc", time.Hour}, ""},
		{"milliseconds", `{"token":"abc","expires_at":1783090800000}`, Token{"abc", time.Hour}, ""},
		{"the latest that is seconds", `{"token":"abc","expires_at":100000000000}`, Token{"abc", time.Unix(0, 0).Add(longest).Sub(wall)}, ""},
		{"a JWT in JSON", `{"token":"` + inHour + `"}`, Token{inHour, time.Hour}, ""},
		{"what is said goes first", `{"token":"` + inHour + `","expires_in":60}`, Token{inHour, time.Minute}, ""},
		{"nothing lasts for nothing", `{"token":"abc","expires_in":0}`, Token{"abc", -1}, ""},
		{"it ends now", `{"token":"abc","expires_at":1783087200}`, Token{"abc", -1}, ""},
		{"a JWT that ends now", jwt(`{"exp":1783087200}`), Token{jwt(`{"exp":1783087200}`), -1}, ""},
		{"all that may be in a token", "!~", Token{"!~", 0}, ""},
		{"as long as may be", strings.Repeat("x", maxReply), Token{strings.Repeat("x", maxReply), 0}, ""},
		{"others are within", `{"token":"abc","data":{"token":"other"},"status":{"token":"other"}}`, Token{"abc", 0}, ""},
		{"longer than time", `{"token":"abc","expires_in":1e300}`, Token{"abc", longest}, ""},
		{"null", `{"access_token":null,"token":"abc","expires_in":null}`, Token{"abc", 0}, ""},

		{"empty", "", Token{}, "it is empty"},
		{"blank", " \n", Token{}, "it is empty"},
		{"two lines", "Your token:\nabc\n", Token{}, "it has 2 lines"},
		{"two words", "Bearer abc", Token{}, `it has ' ' in it`},
		{"a control character", "a\x1bbc", Token{}, `it has '\x1b' in it`},
		{"a delete", "a\x7fbc", Token{}, `it has '\x7f' in it`},
		{"not all of it", `{"access_token":"abc"`, Token{}, "is none"},
		{"no token", `{"error":"invalid_client"}`, Token{}, "without a token"},
		{"a token that is none", `{"token":7}`, Token{}, "without a token"},
		{"an empty one", `{"token":""}`, Token{}, "without a token"},
		{"a line break in it", `{"token":"a\nb"}`, Token{}, "it has 2 lines"},
		{"no number", `{"token":"abc","expires_in":"soon"}`, Token{}, "no number of seconds"},
		{"no instant", `{"token":"abc","expiry":"tomorrow"}`, Token{}, "neither as in RFC 3339"},
		{"too long", strings.Repeat("x", maxReply+1), Token{}, "more than 65536 bytes"},
	} {
		got, err := readToken([]byte(c.reply), wall)
		if got != c.want || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %+v, %v; want %+v, %q", c.name, got, err, c.want, c.wrong)
		}
	}
}

// Every token from Read can be sent, and errors show nothing of it.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"abc", `{"access_token":"abc","expires_in":3600}`, `{"status":{"token":"a","expirationTimestamp":"2026-07-03T16:00:00Z"}}`, jwt(`{"exp":1e9}`), "{", ".."} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, reply []byte) {
		got, err := readToken(reply, wall)
		if (err == nil) == (got.Value == "") {
			t.Fatalf("%+v, %v", got, err)
		}
		for i := range len(got.Value) {
			if c := got.Value[i]; c <= ' ' || c >= 0x7f {
				t.Fatalf("%q", got.Value)
			}
		}
		if got.Lasts > longest*2 {
			t.Fatal(got.Lasts)
		}
	})
}

// The expiry in the token itself counts only if there is no other source.
func TestTokenWithExpiry(t *testing.T) {
	inHour := jwt(`{"exp":1783090800}`)
	for _, c := range []struct{ said, want time.Duration }{{0, time.Hour}, {time.Minute, time.Minute}, {-1, -1}} {
		if got := withExpiry(Token{inHour, c.said}, wall); got != (Token{inHour, c.want}) {
			t.Errorf("said to last %v: lasts %v, want %v", c.said, got.Lasts, c.want)
		}
	}
}
