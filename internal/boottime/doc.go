// Package boottime reads for how long this machine has been up. Two processes of the machine can
// compare their readings, as long as the machine was not booted again. The difference is the time
// between the two readings, with the time in which the machine slept, even if somebody set the wall
// clock meanwhile. It also names the processes of the machine, so that
// another one can see that one has ended.
//
// # Files
//
//	clock.go     a clock of one process, which goes on while the machine sleeps
//	uptime*.go   time since the boot, and which boot it is, by system
//	process*.go  names of processes, and which of them have ended, by system
package boottime
