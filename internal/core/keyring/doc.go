// Package keyring decides what keys are: which of them may be used, who is at fault for a denial,
// and in whose limits each counts. A Pool and a Transport use it, for keys that they got beforehand
// and for keys that come with requests.
//
//	ring.go    which keys are in use, and whose turn it is
//	blame.go   a denial: the key is at fault, or the request
//	owners.go  in which account a key counts, and where a newcomer may belong
//	past.go    a key's answered requests, to be counted again where it moves
//	carry.go   the usage of a key whose requests nobody noted, to be counted where it moves
//	frozen.go  what partitions of idle keys, and others, remember
//
// Its laws, each with a test over random histories:
//
//	K1  A known key counts in exactly one account. A newcomer counts in all that it may belong to,
//	    up to a bound.
//	K2  A move makes no room. After it no cost may go sooner in the new account than before, nor
//	    sooner than if all that the key ever sent had counted there. For limits that the key has
//	    left, a request in flight was never sent.
//	K3  A newcomer that does not count in all accounts to which it may belong has one request in
//	    flight until its first answer.
//	K4  A key is at fault for denials only if it denied three different requests in a row with
//	    nothing served between, or, where requests cannot wait, three that others served. Requests in
//	    a row that all keys denied count for the key, too. A request is at fault only if two keys
//	    denied it, or if one did six times, or if no other key can be asked.
//	K5  While a key is in use, a key that is out is never picked.
//	K6  Memory is bounded, whatever comes.
//
// The package has no clock, lock or goroutine. A Ring and Owners belong to one driver. A
// request in flight counts where its key moves by the driver's scheduler, with scheduler.Join.
package keyring
