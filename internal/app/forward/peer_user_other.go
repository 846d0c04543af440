//go:build !linux

package forward

import "net"

// KnowsUsers reports whether PeerUser can know anything on this system.
const KnowsUsers = false

// PeerUser returns the user at the other end of a connection of this machine. It is known on Linux
// alone.
func PeerUser(net.Conn) (uid int, ok bool) { return 0, false }

// UserAt is PeerUser, by the addresses of a connection.
func UserAt(net.Addr, string) (uid int, ok bool) { return 0, false }
