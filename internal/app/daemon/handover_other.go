//go:build !unix

package daemon

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

var errHere = errors.New("on this system no process takes over from another")

// HandoverSocket, Successor and Predecessor are of other systems.
type (
	HandoverSocket struct{}
	Successor      struct{}
	Predecessor    struct{ Offer }
)

// ListenForHandover returns an error.
func ListenForHandover(string) (*HandoverSocket, error) { return nil, errHere }

// TakeOver returns an error.
func TakeOver(context.Context, string) (*Predecessor, error) { return nil, errHere }

// DialHandover returns an error.
func DialHandover(context.Context, string) (net.Conn, error) { return nil, errHere }

func (*HandoverSocket) Serve(*Predecessor) error                   { return errHere }
func (*HandoverSocket) HandOver(*Successor, time.Duration) error   { return errHere }
func (*HandoverSocket) Next() <-chan *Successor                    { return nil }
func (*HandoverSocket) Requests() net.Listener                     { return nil }
func (*HandoverSocket) Close()                                     {}
func (*Successor) Give(Offer, []syscall.Conn) error                { return errHere }
func (*Successor) Report(any) error                                { return errHere }
func (*Successor) Close() error                                    { return nil }
func (*Predecessor) Listener(string, string) (net.Listener, error) { return nil, errHere }
func (*Predecessor) File(string, string) *os.File                  { return nil }
func (*Predecessor) Each(func([]byte) error) error                 { return errHere }
func (*Predecessor) Close() error                                  { return nil }
