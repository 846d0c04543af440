// Package auth gets the access token that the requests of a run carry, from a command or an OAuth
// server. The package renews the token while the run sends requests. It decides from when and until
// when a token may be sent, and when the run needs another one. It also decides what the run does
// after the API's server has refused a token. The first token of a run, and a token that follows a
// refused one, may be wrong, too. With such a token, one request is sent alone, and the others wait
// for its answer, for 5 s at most.
//
// # Files
//
//	keeper.go   Keeper: gets the token of a run, asks again after a failure; the interface Issuer
//	life.go     when a token is sent, tried, renewed or given up as refused: arithmetic on an instant
//	reply.go    reads a token and its end from a reply: text, JSON, the exp of a JWT
//	command.go  tokens from a command that is run
//	oauth.go    tokens from an OAuth server, by client credentials
//	shell_*.go  the shell of each system, for commands
package auth
