package sharetest_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/share/sharetest"
)

// shelf is a Store of one's own: a map in this process. A database would compare a version.
type shelf struct {
	mu    sync.Mutex
	began time.Time
	blobs map[string][]byte
}

func newShelf() *shelf { return &shelf{began: time.Now(), blobs: map[string][]byte{}} }

func (s *shelf) read(key string) share.Reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	return share.Reading{
		Clock: int64(time.Since(s.began)), Wall: time.Now().UnixNano(), Incarnation: fmt.Sprint(s.began.UnixNano()),
		Steady: true, Blob: s.blobs[key],
	}
}

// put puts a blob if nobody else did since the reading.
func (s *shelf) put(key string, was, blob []byte) (done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !bytes.Equal(s.blobs[key], was) || (s.blobs[key] == nil) != (was == nil) {
		return false
	}
	s.blobs[key] = bytes.Clone(blob)
	return true
}

func (s *shelf) Turn(ctx context.Context, key string, f func(share.Reading) ([]byte, error)) error {
	return share.Retry(ctx, func() (done bool, err error) {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		r := s.read(key)
		blob, err := f(r)
		if err != nil {
			return false, err
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		return s.put(key, r.Blob, blob), nil
	})
}

// TestShelf is what the author of a Store writes. One that goes back in time passes Restored, too.
func TestShelf(t *testing.T) {
	s := newShelf()
	sharetest.Run(t, func(*testing.T) share.Store { return s })
}

// A Store of one's own passes TestShelf. Memory is one for tests of code that uses shared limits.
func ExampleMemory() {
	var m sharetest.Memory
	put := func(share.Reading) ([]byte, error) { return []byte("20 a second"), nil }
	for _, s := range []share.Store{newShelf(), &m} {
		fmt.Println(s.Turn(context.Background(), "github", put))
	}
	m.Away(fmt.Errorf("the machine is down"))
	fmt.Println(m.Turn(context.Background(), "github", put), m.Turns())
	// Output:
	// <nil>
	// <nil>
	// the machine is down 1
}
