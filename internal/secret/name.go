package secret

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"
)

// private are parts of the names of header fields that hold credentials.
var private = []string{"auth", "cookie", "token", "key", "secret", "passw", "passphrase", "credential", "session",
	"signature", "csrf", "xsrf", "jwt", "nonce"}

// signed are whole words of such names. As a part, each could belong to another word: sign is a
// part of design.
var signed = []string{"sign", "sig", "hmac", "otp", "totp"}

// PrivateField reports whether a header field of that name holds a credential.
func PrivateField(name string) bool {
	name = strings.ToLower(name)
	if name == "idempotency-key" { // it identifies the request, not its sender
		return false
	}
	if slices.ContainsFunc(private, func(part string) bool { return strings.Contains(name, part) }) {
		return true
	}
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	return slices.ContainsFunc(words, func(word string) bool { return slices.Contains(signed, word) })
}

// parameters are the names of secret parameters, in small letters and without separators. A name
// that only contains one, as max_tokens does, is not secret.
var parameters = []string{
	"apikey", "xapikey", "appkey", "accesskey", "secretkey", "privatekey", "subscriptionkey", "secret", "clientsecret",
	"appsecret", "password", "sslpassword", "sentinelpassword", "passwd", "pwd", "passphrase",
	"token", "accesstoken", "refreshtoken", "idtoken", "authtoken", "bearertoken", "sessiontoken", "apitoken",
	"csrftoken", "xsrftoken", "auth", "authorization", "credential", "credentials",
	"jwt", "clientassertion", "sig", "signature", "session", "sessionid", "sid", "xamzsignature", "xamzsecuritytoken",
	"xamzcredential", "xgoogsignature",
}

var betweenWords = strings.NewReplacer("-", "", "_", "", ".", "", " ", "")

// PrivateParameter reports by the name of a parameter of a query, a form or an object whether its
// value is a secret. A parameter named key or sign is secret only if its value is as hard to guess
// as keys of APIs. Most others are names of things.
func PrivateParameter(name, value string) bool {
	name = betweenWords.Replace(strings.ToLower(name))
	if name == "key" || name == "sign" {
		const least = 20
		return len(value) >= least && !Guessable(value)
	}
	return slices.Contains(parameters, name)
}

// InMembers reports whether JSON may have a member with a secret name. It reads only what stands
// before each colon, so it is fast for long texts.
func InMembers(body []byte) bool {
	const longest = 30 // of a secret name, with its separators
	for at := 0; ; at++ {
		i := bytes.IndexByte(body[at:], ':')
		if i < 0 {
			return false
		}
		at += i
		name, ok := bytes.CutSuffix(bytes.TrimRight(body[max(0, at-longest-8):at], " \t\r\n"), []byte(`"`))
		if !ok {
			continue
		}
		name = name[bytes.LastIndexByte(name, '"')+1:]
		const hard = "3f9a1c07be5284d63f9a1c07be5284d6" // a value with which every such name is secret
		if len(name) > 0 && len(name) <= longest && PrivateParameter(string(name), hard) {
			return true
		}
	}
}

// InField returns the secrets in a header field that identifies a caller. A server may repeat all
// of its value, or the essential part: what stands behind the name of a scheme, a user or a
// password, or the value of one cookie.
func InField(name, value string) []string {
	all := []string{value}
	if name == "Cookie" {
		for c := range strings.SplitSeq(value, ";") {
			_, v, _ := strings.Cut(c, "=")
			all = append(all, strings.TrimSpace(v))
		}
		return all
	}
	scheme, rest, ok := strings.Cut(value, " ")
	if !ok {
		return all
	}
	rest = strings.TrimSpace(rest)
	all = append(all, rest)
	if plain, err := base64.StdEncoding.DecodeString(rest); err == nil && strings.EqualFold(scheme, "basic") {
		user, password, _ := strings.Cut(string(plain), ":")
		all = append(all, password, user) // some servers have the key in place of the user
	}
	return all
}
