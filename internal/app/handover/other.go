//go:build !unix

package handover

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"
)

var errHere = errors.New("on this system no process takes over from another")

// Socket, Successor and Predecessor are of other systems.
type (
	Socket      struct{}
	Successor   struct{}
	Predecessor struct{ Offer }
)

// Listen returns an error.
func Listen(string) (*Socket, error) { return nil, errHere }

// Take returns an error.
func Take(context.Context, string) (*Predecessor, error) { return nil, errHere }

// Dial returns an error.
func Dial(context.Context, string) (net.Conn, error) { return nil, errHere }

func (*Socket) Serve() error                                       { return errHere }
func (*Socket) Next() <-chan *Successor                            { return nil }
func (*Socket) Requests() net.Listener                             { return nil }
func (*Socket) Close()                                             {}
func (*Successor) Give(Offer, []syscall.Conn) error                { return errHere }
func (*Successor) Ready(time.Duration) error                       { return errHere }
func (*Successor) Report(any) error                                { return errHere }
func (*Successor) Close() error                                    { return nil }
func (*Predecessor) Listener(string, string) (net.Listener, error) { return nil, errHere }
func (*Predecessor) Ready() error                                  { return errHere }
func (*Predecessor) Each(func([]byte) error) error                 { return errHere }
func (*Predecessor) Close() error                                  { return nil }
