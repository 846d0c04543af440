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
//	secret.go            Set: its construction, and the search for echoes of keys
//	form.go              the forms of an echo: escapes, base64, or a part of the value at a cut
//	match.go             how a pattern of a key's value matches a text
//	guess.go             values that are so easy to guess that no search is made for them
//	name.go              names of fields and parameters that hold secrets
//	credential.go        the credential of a request
//	url.go               hides secrets in URLs and queries
//	place.go             Places: the servers that may get keys, by scheme, host and port
//	without_password.go  hides passwords in addresses of servers and stores
package secret
