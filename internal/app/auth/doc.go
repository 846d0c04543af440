// Package auth gets the access token that the requests of a run carry, from a command or an OAuth
// server. It renews the token while the run sends requests. The package decides from when and until
// when a token may be sent. It lets the first request with a new token go alone, until the token is
// known to work. It also decides what the run does after the server refused a token, and when the
// run needs another token.
//
// # Files
//
//	keeper.go     Issuer, and the Keeper of a run's token
//	life.go       when a token is sent, tried and renewed: arithmetic on an instant
//	reply.go      a token in a reply of an issuer
//	command.go    tokens from a command
//	oauth.go      tokens from an OAuth server
//	shell_*.go    the shell of each system
package auth
