// Package keyring decides three things: which API keys may be used, whether a key or a request is
// at fault for a denial, and in whose limits each key counts. A denial is an answer by which the
// server states that the key may not do this, such as a 401. A Pool and a Transport use package
// keyring. Keys are configured beforehand, or a Transport meets them in the requests of its
// callers.
//
//	ring.go        which key a Transport uses next; which are banned, until somebody brings them back
//	blame.go       key or request at fault for a 401 or 403: how many denials prove it
//	denied_row.go  after how many denials with every key nobody asks a server, and until when
//	owners.go      in which account a key counts; where a new key may belong
//	past.go        a key moves to another account: its answered requests count there
//	carry.go       a key moves to another account: its usage counts there, without records
//	frozen.go      memory of idle keys and models: its bound, and what is forgotten first
//
// Its laws, each with a test over random histories:
//
//	K1  A known key counts in exactly one account. A newcomer counts in all accounts that it may
//	    belong to, up to a bound.
//	K2  The move of a key to another account makes no room. After the move no cost may go sooner
//	    in the new account than before it, nor sooner than if all that the key ever sent had
//	    counted there. In limits that the key has left, its requests in flight no longer count.
//	K3  A newcomer that does not count in all accounts to which it may belong has one request in
//	    flight until its first answer.
//	K4  A key is at fault for denials only if three different requests in a row were denied with
//	    it, and none was served in between. Where requests cannot wait, each of the three must
//	    have been served with another key. A series of requests that every key denied counts
//	    against the key, too. A request is at fault only if two keys denied it, or if one key
//	    denied it six times, or if no other key can be asked. Where requests can wait, a denial
//	    after a refusal by a limit, with nothing served in between, is a ban of the key.
//	    Where requests cannot wait, all keys stay away from a server after a row of such requests, and
//	    longer each time. The row is longer if the server has served them, or if rows of denials have
//	    proved to be the requests' own fault.
//	K5  A key that is out of use, or that denied the request, is not picked while another key is
//	    neither.
//	K6  Memory is bounded, whatever keys and requests come.
//
// Package keyring has no clock, lock or goroutine. Its two main types are Ring (which keys are in
// use, and which are at fault) and Owners (in which account each key counts). Neither is safe for
// concurrent use. If a key moves to another account while a request with the key is in flight, the
// caller counts this request in the new account, too, by scheduler.Join.
package keyring
