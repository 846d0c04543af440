// Package count counts how often each function is entered. Package entries adds it to the build,
// with a constant Most, the number of functions. The counters are in a memory-mapped file, so
// package entries can read them while the program runs.
package count

import (
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// N has the counter of each function, and behind them what Mark kept.
var N = open(os.Getenv("ENTRIES_FILE"))

func open(name string) *[2 * Most]atomic.Uint64 {
	if name == "" {
		return new([2 * Most]atomic.Uint64)
	}
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	b, err := syscall.Mmap(int(file.Fd()), 0, 2*Most*8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	return (*[2 * Most]atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(b)))
}

// Mark keeps the counts so far.
func Mark() {
	for i := range Most {
		N[Most+i].Store(N[i].Load())
	}
}
