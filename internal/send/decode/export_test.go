package decode

// Taken returns what all open Decoders take now.
func Taken() int64 { return taken.Load() }
