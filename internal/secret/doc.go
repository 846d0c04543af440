// Package secret keeps the values of API keys out of the files, logs and servers that must not have
// them. A Set finds copies of these values, called echoes, in servers' answers. It does not look
// for values that are easy to guess, such as "test", since these occur by chance. The type Places
// lists the servers to which a key may be sent.
//
// Package secret does not protect secrets in memory. It does not protect against a hostile server
// either: such a server can write a key in a form that no search finds. The package is for honest
// servers that repeat a part of the request, with the key in it, in an error or in a log.
//
// Package secret only computes on bytes: it has no clock and no lock. A Set does not change after
// New has made it, and is safe for concurrent use.
//
// # Files
//
//	secret.go            Set: which keys are searched for, and hidden in a text
//	form.go              echoes of a key: escaped, in base64, or cut off
//	match.go             how a pattern of a key's value matches a text
//	guess.go             values too short or easy to be hidden; words that look like tokens
//	name.go              which fields and parameters are secret by name: Authorization, api_key
//	credential.go        which header or parameter is a request's key; signatures
//	signed_token.go      what stays of a JWT that a client signs for each request
//	url.go               hides user, password and secret parameters of a URL
//	place.go             Places: the servers that may get keys, by scheme, host and port
//	without_password.go  hides passwords in addresses of servers and stores
package secret
