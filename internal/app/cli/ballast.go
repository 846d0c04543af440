package cli

import "sync"

// ballastSize is that of the memory of Ballast.
const ballastSize = 32 << 20

var ballast = sync.OnceValue(func() []byte { return make([]byte, ballastSize) })

// Ballast holds memory that is never written, and so takes none. Without it, the collector of a process
// with a few MB runs thirty times a second under load. With it, a process may make twice as much garbage
// as this between two collections. All commands of a process share it, so that none has to clear memory
// that another one used. Safe for concurrent use.
func Ballast() { ballast() }
