//go:build !unix

package main

import "os"

// notifyAgain does nothing: there is no such signal on this system.
func notifyAgain(chan<- os.Signal) {}
