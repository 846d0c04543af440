package main

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/node"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/share"
)

func storeTurn(t *testing.T, address, name string, f func(share.Reading) ([]byte, error)) {
	t.Helper()
	s, err := openStore(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Turn(t.Context(), name, f); err != nil {
		t.Fatal(err)
	}
}

// ripeStore makes a store as it is a while after its first node: a new one is quiet for 7 s and a
// window.
func ripeStore(t *testing.T, address, name string, own func() limit.Limiter) {
	t.Helper()
	storeTurn(t, address, name, func(r share.Reading) ([]byte, error) {
		past := limit.Span(own()) + 10*time.Second
		r.Clock -= int64(past)
		r.Wall -= int64(past)
		n := node.New(node.Config{New: own, ID: "first"})
		n.Begin(0)
		return n.Read(0, 0, r)
	})
}

// putStore changes the bytes under a name, whatever they are.
func putStore(t *testing.T, address, name string, change func(was []byte) []byte) {
	t.Helper()
	storeTurn(t, address, name, func(r share.Reading) ([]byte, error) { return change(r.Blob), nil })
}

// storeBook is the content of a store under a name.
func storeBook(t *testing.T, address, name string) (b *node.Book) {
	t.Helper()
	putStore(t, address, name, func(was []byte) []byte {
		var err error
		if b, err = node.Decode(was); err != nil {
			t.Fatal(err)
		}
		return was
	})
	return b
}
