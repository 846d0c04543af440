package daemon

import "golang.org/x/sys/unix"

// peerOf asks the kernel for the process that connected a socket.
func peerOf(fd int) (Peer, error) {
	const local = 0 // SOL_LOCAL
	x, err := unix.GetsockoptXucred(fd, local, unix.LOCAL_PEERCRED)
	if err != nil {
		return Peer{}, err
	}
	pid, err := unix.GetsockoptInt(fd, local, unix.LOCAL_PEERPID)
	return Peer{PID: pid, UID: int(x.Uid)}, err
}
