package secret

import (
	"slices"
	"strings"
)

// private are parts of the names of header fields that tell who is asking.
var private = []string{"auth", "cookie", "token", "key", "secret", "passw", "passphrase", "credential", "session", "signature", "csrf", "xsrf", "jwt", "nonce"}

// signed are whole words of such names: a part of a name could be that of another word, as sign is of design.
var signed = []string{"sign", "sig", "hmac", "otp", "totp"}

// PrivateField tells by its name whether a header field says who is asking.
func PrivateField(name string) bool {
	name = strings.ToLower(name)
	if name == "idempotency-key" { // it says what is asked, not by whom
		return false
	}
	if slices.ContainsFunc(private, func(part string) bool { return strings.Contains(name, part) }) {
		return true
	}
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	return slices.ContainsFunc(words, func(word string) bool { return slices.Contains(signed, word) })
}

// parameters are the names, in small letters and without what is between words, of parameters that are secrets. A name that has one of
// them within, as max_tokens has, is none.
var parameters = []string{
	"apikey", "xapikey", "appkey", "accesskey", "secretkey", "privatekey", "subscriptionkey", "secret", "clientsecret", "appsecret", "password", "passwd", "pwd", "passphrase",
	"token", "accesstoken", "refreshtoken", "idtoken", "authtoken", "bearertoken", "sessiontoken", "apitoken", "csrftoken", "xsrftoken", "auth", "authorization", "credential", "credentials",
	"jwt", "clientassertion", "sig", "signature", "session", "sessionid", "sid", "xamzsignature", "xamzsecuritytoken", "xamzcredential", "xgoogsignature",
}

var betweenWords = strings.NewReplacer("-", "", "_", "", ".", "", " ", "")

// PrivateParameter says by the name of a parameter of a query, a form or an object whether its value is a secret. A parameter that is called
// key or sign is one where its value is as hard to guess as keys of APIs are: most others are the names of things.
func PrivateParameter(name, value string) bool {
	name = betweenWords.Replace(strings.ToLower(name))
	if name == "key" || name == "sign" {
		const least = 20
		return len(value) >= least && !Guessable(value)
	}
	return slices.Contains(parameters, name)
}
