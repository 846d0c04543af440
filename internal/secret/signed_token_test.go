package secret

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

// jwt returns a token with this header and these claims.
func jwt(header, claims, signature string) string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(header)) + "." + part([]byte(claims)) + "." + part([]byte(signature))
}

func bearer(token string) string {
	return Credential(map[string][]string{"Authorization": {"Bearer " + token}}, new(url.URL))
}

// Tokens that a key signs for its requests are one credential. Those of another key are another one.
func TestTokensOfOneRequest(t *testing.T) {
	for name, form := range map[string][2]string{ // KEY is the key, NUM the request
		"Coinbase": {`{"alg":"ES256","kid":"organizations/KEY","nonce":"NUM","typ":"JWT"}`,
			`{"iss":"cdp","nbf":NUM,"exp":12NUM,"sub":"organizations/KEY","uri":"GET api.coinbase.com/v3/orders/NUM"}`},
		"Upbit":         {`{"alg":"HS512"}`, `{"access_key":"KEY","nonce":"NUM-77"}`},
		"Upbit, orders": {`{"alg":"HS512"}`, `{"query_hash":"NUMab","access_key":"KEY","query_hash_alg":"SHA512","nonce":"NUM"}`},
		"GitHub App":    {`{"alg":"RS256"}`, `{"iss":"KEY","iat":170000NUM,"exp":170000NUM}`},
		"App Store":     {`{"alg":"ES256","kid":"KEY"}`, `{"iss":"57246542","iat":17000NUM00,"exp":17000NUM99,"aud":"appstoreconnect-v1"}`},
		"Zhipu":         {`{"alg":"HS256","sign_type":"SIGN"}`, `{"api_key":"KEY","timestamp":17000NUM00000,"exp":17000NUM99000}`},
		"only a kid":    {`{"kid":"KEY"}`, `{"jti":"NUM","exp":17000NUM}`},
	} {
		token := func(key string, request int) string {
			of := strings.NewReplacer("KEY", key, "NUM", fmt.Sprint(request))
			return jwt(of.Replace(form[0]), of.Replace(form[1]), fmt.Sprint(key, request))
		}
		if one, two := bearer(token("a", 1000)), bearer(token("a", 2000)); one != two {
			t.Errorf("%s: two requests of a key: %q and %q", name, one, two)
		}
		if one, two := bearer(token("a", 1000)), bearer(token("b", 1000)); one == two {
			t.Errorf("%s: two keys are both %q", name, one)
		}
	}
	with := jwt(`{"alg":"HS256"}`, `{"access_key":"a","nonce":"1"}`, "x")
	without := jwt(`{"alg":"HS256"}`, `{"access_key":"a","nonce":"2","query_hash":"5","query_hash_alg":"SHA512"}`, "y")
	if bearer(with) != bearer(without) {
		t.Error("requests with parameters and without are two credentials")
	}
}

// A token that lives long is a key, as it stands. So is a token that names nobody, and what is none.
func TestTokensThatAreKeys(t *testing.T) {
	for name, token := range map[string]string{
		"of ten years":    jwt(`{"alg":"HS256"}`, `{"iss":"supabase","role":"anon","iat":1700000000,"exp":2015000000}`, "x"),
		"without an end":  jwt(`{"kid":"a"}`, `{"sub":"a","jti":"key 7","iat":1700000000}`, "x"),
		"of nobody":       jwt(`{"alg":"HS256"}`, `{"exp":1700000000,"nonce":"7"}`, "x"),
		"too long":        jwt(`{"alg":"HS256"}`, `{"sub":"`+strings.Repeat("a", mostToken)+`","nonce":"7"}`, "x"),
		"no object":       jwt(`{"alg":"HS256"}`, `["sub"]`, "x"),
		"null":            jwt(`{"alg":"HS256"}`, `null`, "x"),
		"five parts":      jwt(`{"alg":"HS256"}`, `{"sub":"a","nonce":"7"}`, "x") + ".a.b",
		"two parts":       "eyJhIjoxfQ.eyJhIjoxfQ",
		"no base64":       "eyJ+.eyJ+.x",
		"a key like them": "eyJhbGciOiJIUzI1NiJ9",
	} {
		if got := bearer(token); got != "Bearer "+token {
			t.Errorf("%s: %q is %q", name, token, got)
		}
	}
}

// What differs between requests makes no difference, what names the key does, and no text is an error.
func FuzzHolder(f *testing.F) {
	f.Add("a", "b", "7", "8", "x.y.z")
	f.Add("ü\"", "", "\x00", " ", "eyJ9.eyJ9.")
	f.Fuzz(func(t *testing.T, key, other, one, two, wild string) {
		holder(wild)
		token := func(key, nonce string) string {
			claims, err := json.Marshal(map[string]string{"access_key": key, "nonce": nonce, "jti": nonce, "uri": nonce})
			if err != nil {
				t.Fatal(err)
			}
			return jwt(`{"alg":"HS256"}`, string(claims), nonce)
		}
		if len(key)+len(other)+len(one)+len(two) > 200 {
			t.Skip()
		}
		a, ok := holder(token(key, one))
		if b, _ := holder(token(key, two)); a != b || !ok {
			t.Errorf("%q and %q of %q: %q and %q", one, two, key, a, b)
		}
		if b, _ := holder(token(other, one)); (a == b) != (key == other) && utf8.ValidString(key) && utf8.ValidString(other) {
			t.Errorf("%q and %q: %q and %q", key, other, a, b)
		}
	})
}
