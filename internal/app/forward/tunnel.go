package forward

import (
	"context"
	"io"
	"net"
	"sync"
)

// tunnel copies bytes between a client and another host, both ways, until both have ended.
func (d *Door) tunnel(client, other net.Conn) {
	stop := context.AfterFunc(d.over, func() {
		client.Close()
		other.Close()
	})
	defer stop()
	defer client.Close()
	defer other.Close()
	var both sync.WaitGroup
	pass := func(to, from net.Conn) {
		if _, err := io.Copy(to, from); err != nil { // nothing more can come of either way
			to.Close()
			from.Close()
			return
		}
		_ = closeWrite(to)
	}
	both.Go(func() { pass(other, client) })
	both.Go(func() { pass(client, other) })
	both.Wait()
}
