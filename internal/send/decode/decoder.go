package decode

import (
	"fmt"
	"io"
)

// Decoder decodes a body beside its way to the client. It returns from Feed when all that can be
// decoded was passed on, and reads nothing by itself.
//
// The first Feed starts a goroutine, which waits between the calls. End ends it, and must be called.
// The goroutine refers to the Decoder and to its function, and to nothing else
// of the caller.
//
// A Decoder makes mostGrowth bytes of each byte at most, after the first freeGrowth. All Decoders
// take MostMemory together. Beyond that, a body is not read any more, and End says so. Not safe for
// concurrent use, but its calls may come from several goroutines, one after the other.
type Decoder struct {
	codings Codings
	to      func([]byte)
	held    held

	pieces chan []byte   // from Feed to the goroutine
	idle   chan struct{} // the goroutine waits for the next piece; closed: it has ended
	piece  []byte        // the unread rest of the last piece
	ended  bool          // no piece follows
	over   bool
	in     int64 // bytes that came
	out    int64 // bytes that were passed on
	err    error
}

const (
	freeGrowth = 1 << 20
	mostGrowth = 200
)

// New returns a Decoder that passes on what it decodes to a function. The function must not keep
// the bytes.
func New(c Codings, to func([]byte)) *Decoder {
	return &Decoder{codings: c, to: to}
}

// Feed decodes the next piece of the body. The Decoder does not keep it.
func (d *Decoder) Feed(p []byte) {
	if d.over || len(p) == 0 {
		return
	}
	d.in += int64(len(p))
	if d.pieces == nil {
		d.pieces, d.idle, d.piece = make(chan []byte), make(chan struct{}), p
		go d.run()
	} else {
		d.pieces <- p
	}
	_, waits := <-d.idle
	d.over = !waits
}

// End says that the body has ended, or was given up. It returns nil if the coding has reached its
// end, io.ErrUnexpectedEOF if it has not, and otherwise why the body was not read any more. Further
// calls return the same.
func (d *Decoder) End() error {
	if !d.over && d.pieces != nil {
		d.ended = true
		close(d.pieces)
		<-d.idle
	}
	d.over = true
	return d.err
}

// read is the body, for the goroutine.
type read Decoder

func (r *read) Read(p []byte) (int, error) {
	for len(r.piece) == 0 {
		if r.ended {
			return 0, io.EOF
		}
		r.idle <- struct{}{}
		r.piece = <-r.pieces
	}
	n := copy(p, r.piece)
	r.piece = r.piece[n:]
	return n, nil
}

// run decodes on a goroutine of its own, since decoders read by themselves. Between two pieces the
// goroutine waits in one of their Reads. A coroutine of package iter would do, too, but it ends the
// process if the caller has locked its thread.
func (d *Decoder) run() {
	defer close(d.idle)
	defer d.held.free()
	in := &reader{codings: d.codings, body: source{r: (*read)(d)}, held: &d.held}
	p := make([]byte, 4<<10)
	for {
		n, err := in.Read(p)
		if d.out += int64(n); d.out > freeGrowth+mostGrowth*d.in {
			d.err = fmt.Errorf("%w: %d bytes of %d", ErrBounds, d.out, d.in)
			return
		}
		if n > 0 {
			d.to(p[:n])
		}
		if err != nil {
			if err != io.EOF {
				d.err = err
			}
			return
		}
	}
}
