package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/paceline-go/paceline/internal/app/durable"
)

// full is a file on a disk that is full after a number of lines, until there is room again.
type full struct {
	durable.Handle
	lines atomic.Int32
}

func (f *full) Write(b []byte) (int, error) {
	n := int32(bytes.Count(b, []byte("\n")))
	if room := f.lines.Add(-n) + n; room < n {
		f.lines.Add(n) // the written part is cut off again
		fits := 0
		for range room {
			fits += bytes.IndexByte(b[fits:], '\n') + 1
		}
		n, _ := f.Handle.Write(b[:fits+bytes.IndexByte(b[fits:], '\n')/2])
		return n, errors.New("no space left on device")
	}
	return f.Handle.Write(b)
}

// A disk fills up under each of the files: the sending stops, nothing is lost, and another run
// resumes.
func TestFullDisk(t *testing.T) {
	for _, which := range []string{"results", "dead letters", "journal"} {
		t.Run(which, func(t *testing.T) {
			srv, seen := counting(t, func(w http.ResponseWriter, q *http.Request) {
				if which == "dead letters" {
					w.WriteHeader(http.StatusBadRequest)
				}
			})
			b := newBench(t)
			b.config.Concurrency = 4
			lines := make([]string, 50)
			for i := range lines {
				lines[i] = request(fmt.Sprint(i), fmt.Sprintf("%s/?%d", srv.URL, i))
			}
			b.tamper = func(r *Run) {
				through := map[string]func(func(durable.Handle) durable.Handle){
					"results": r.store.Out.Through, "dead letters": r.store.Dead.Through, "journal": r.store.Journal.Through}[which]
				through(func(h durable.Handle) durable.Handle {
					f := &full{Handle: h}
					f.lines.Store(11)
					return f
				})
			}
			first := b.run(lines...)
			if !errors.Is(first.err, ErrOutput) || !strings.Contains(first.err.Error(), "no space left") || first.Left == 0 || first.Lost != 0 {
				t.Fatalf("%+v, %v", first.Totals, first.err)
			}
			// Four lines wait for the write that fails, four are in flight, and on a busy machine four more begin meanwhile.
			if sent := first.Sends; sent > 11+3*4 {
				t.Errorf("%d were sent although only 11 lines could be written", sent)
			}
			b.tamper = nil
			second := b.run(lines...)
			if second.err != nil || second.Left != 0 || second.Lost != 0 || first.Done+second.Done+first.Dead+second.Dead != 50 {
				t.Fatalf("again: %+v, %v", second.Totals, second.err)
			}
			all := second.results
			if which == "dead letters" {
				all = second.dead
			}
			if len(all) != 50 || second.lines != map[string]int{"results": 50, "dead letters": 0, "journal": 50}[which] {
				t.Errorf("%d ids, %d lines", len(all), second.lines)
			}
			for i := range lines {
				id := fmt.Sprint(i)
				if n := seen(id); n != 1 && !(n == 2 && all[id].PossibleRepeat) {
					t.Errorf("%s was sent %d times, possible repeat: %v", id, n, all[id].PossibleRepeat)
				}
				if all[id].PossibleRepeat && !slices.Contains(namedUnanswered(second.notices), id) {
					t.Errorf("%s may be a repeat, and is not named:\n%s", id, second.notices)
				}
			}
		})
	}
}

// forAllBut is a disk on which no line with a member of that name fits.
type forAllBut struct {
	durable.Handle
	name string
}

func (f *forAllBut) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(`"`+f.name+`"`)) {
		return 0, errors.New("no space left on device")
	}
	return f.Handle.Write(b)
}

// forAllBut lets the journal note no member of that name.
func (b *bench) forAllBut(name string) {
	b.tamper = func(r *Run) {
		r.store.Journal.Through(func(h durable.Handle) durable.Handle { return &forAllBut{h, name} })
	}
}

// What the journal cannot note is not sent: no later run would count it.
func TestFullDiskForSends(t *testing.T) {
	srv, seen := counting(t, func(http.ResponseWriter, *http.Request) {})
	b := newBench(t)
	b.forAllBut("send")
	got := b.run(request("0", srv.URL+"/?0"))
	if n := seen("0"); !errors.Is(got.err, ErrOutput) || n > 0 || got.Left != 1 || got.Done+got.Lost != 0 {
		t.Errorf("it came %d times, %+v, %v", n, got.Totals, got.err)
	}
}

// If results can be written but their answers in the journal cannot, the sending stops as well.
// Otherwise a restart would count windows that are over.
func TestFullDiskForAnswers(t *testing.T) {
	srv, _ := counting(t, func(http.ResponseWriter, *http.Request) {})
	b := newBench(t)
	b.config.Concurrency = 1
	b.forAllBut("answer")
	if got := b.run(requests(50, srv.URL)...); !errors.Is(got.err, ErrOutput) || got.Left == 0 || got.Lost != 0 || got.Done != len(got.results) {
		t.Errorf("%+v, %v", got.Totals, got.err)
	}
}

// If the journal cannot note when a line of a stream was read, the run ends. Another run would give the line its whole
// time again.
func TestFullDiskForTimesOfLines(t *testing.T) {
	srv, seen := counting(t, func(http.ResponseWriter, *http.Request) {})
	b := newBench(t)
	b.forAllBut("read")
	got := b.stream(strings.NewReader(timed("0", srv.URL+"/?0", "1h")))
	if !errors.Is(got.err, ErrOutput) || !strings.Contains(got.err.Error(), "no space left") {
		t.Errorf("it came %d times, %+v, %v", seen("0"), got.Totals, got.err)
	}
}

// swallowing loses a line, as a lying file system or another process might. The counts are compared
// with the file.
type swallowing struct {
	durable.Handle
	lines atomic.Int32
}

func (f *swallowing) Write(b []byte) (int, error) {
	kept := make([]byte, 0, len(b))
	for line := range bytes.Lines(b) {
		if f.lines.Add(-1) != 0 {
			kept = append(kept, line...)
		}
	}
	if n, err := f.Handle.Write(kept); err != nil {
		return n, err
	}
	return len(b), nil
}

func TestLostIsFound(t *testing.T) {
	srv, _ := counting(t, func(http.ResponseWriter, *http.Request) {})
	b := newBench(t)
	b.tamper = func(r *Run) {
		r.store.Out.Through(func(h durable.Handle) durable.Handle {
			f := &swallowing{Handle: h}
			f.lines.Store(3)
			return f
		})
	}
	var notices lockedBuffer
	c := b.config
	c.Notice = func(s string) { fmt.Fprintln(&notices, s) }
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(requests(10, srv.URL), "\n")
	if err := errors.Join(r.Check("in", strings.NewReader(text)), r.Open()); err != nil {
		t.Fatal(err)
	}
	b.tamper(r)
	if err := r.Send(context.Background(), "in", strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Close(); err != nil || got.Lost != 1 || got.Done != 10 {
		t.Errorf("one result of ten was swallowed: %+v, %v", got, err)
	}
}

// namedUnanswered returns the ids that notices name as sent and not answered.
func namedUnanswered(notices string) (ids []string) {
	for line := range strings.Lines(notices) {
		if list, is := strings.CutPrefix(line, "  unanswered: "); is {
			ids = append(ids, strings.Split(strings.TrimSuffix(list, "\n"), ", ")...)
		}
	}
	return ids
}
