package batch

import "crypto/sha256"

// digest stands for an id: 128 bits of its SHA-256, so that a million ids take the same room however long they are. Two
// ids of a billion have the same one with a probability of about 1.5e-21.
type digest [16]byte

func digestOf(id string) digest {
	sum := sha256.Sum256([]byte(id))
	return digest(sum[:16])
}

// What is known of an id, and in which line of the input it is (0: in none so far).
const (
	inOut    = 1 << iota // OUT says done or expired
	inDead               // the dead letters have it
	doubtful             // it may have been sent before the crash; its answer is not known
	backOut              // found when OUT was read back
	backDead             // found when the dead letters were read back
	flagBits = iota
	flagMask = 1<<flagBits - 1
)

// ledger knows every id of the input and of the files of the runs before. About 50 bytes an id.
type ledger map[digest]uint64

func (l ledger) mark(d digest, flag uint64)     { l[d] |= flag }
func (l ledger) has(d digest, flag uint64) bool { return l[d]&flag != 0 }

// line notes where an id was seen first, and returns the line where it was.
func (l ledger) line(d digest, line int) (first int) {
	v := l[d]
	if was := int(v >> flagBits); was != 0 {
		return was
	}
	l[d] = v | uint64(line)<<flagBits
	return line
}
