// Package auth gets the access token that the requests of a run carry, from a command or an OAuth
// server. It renews the token while the run sends requests. The package decides from when and until
// when a token may be sent. With the first token of the run, and with a token that replaces a
// refused one, one request goes alone at first, for 5 s at most. It also decides what the run does
// after the server refused a token, and when the run needs another token.
//
// # Files
//
//	keeper.go   gets the token of a run; waits between failures
//	life.go     when a token is tried alone, renewed, or given up after a 401
//	reply.go    reads a token and its end from a reply: text, JSON, the exp of a JWT
//	command.go  tokens from a command that is run
//	oauth.go    an OAuth server: client credentials, its errors
//	shell_*.go  the shell of each system, for commands
package auth
