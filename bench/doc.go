// Package bench measures Paceline beside other limiters. It is a module of its own, so that what it compares with is no
// dependency of Paceline.
//
//	cd bench && go test -bench . -count 5
package bench
