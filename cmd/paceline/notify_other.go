//go:build !unix

package main

import "os"

// notifyAgain does nothing: there are no such signals on this system.
func notifyAgain(_, _ chan<- os.Signal) {}
