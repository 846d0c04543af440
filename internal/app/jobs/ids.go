package jobs

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// Beginnings of ids.
const (
	filePrefix    = "file-"
	batchPrefix   = "batch_"
	messagePrefix = "msgbatch_"
)

const idBytes = 16

// newID returns an id that nobody can guess.
func newID(prefix string) string {
	b := make([]byte, idBytes)
	_, _ = rand.Read(b) // never fails: see crypto/rand
	return prefix + hex.EncodeToString(b)
}

// isID reports whether s is such an id: nothing else of a folder is read.
func isID(s, prefix string) bool {
	digits, ok := strings.CutPrefix(s, prefix)
	return ok && len(digits) == 2*idBytes && strings.Trim(digits, "0123456789abcdef") == ""
}
