package sharetest

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/paceline-go/paceline/share"
)

// Memory is a share.Store in this process, for tests of code that uses shared limits. In a
// testing/synctest bubble its clock is the bubble's. The zero value is ready. Safe for concurrent
// use.
type Memory struct {
	mu    sync.Mutex
	away  error
	again int
	blobs map[string][]byte
	puts  map[string]int
}

// Away makes all turns fail with an error from now on. With nil they succeed again.
func (m *Memory) Away(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = err
}

// Restart loses all blobs, as a store without a disk does when it is restarted.
func (m *Memory) Restart() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blobs = nil
	m.again++
}

// Save keeps a copy of the store. The function that it returns puts the copy back, as a restored
// backup is.
func (m *Memory) Save() (restore func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := maps.Clone(m.blobs)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.blobs = maps.Clone(was)
		for key := range m.puts {
			m.puts[key]++ // no turn that read it before is put
		}
	}
}

// Turns returns the number of turns that were put.
func (m *Memory) Turns() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, puts := range m.puts {
		n += puts
	}
	return n
}

// Names implements share.Lister.
func (m *Memory) Names(context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.blobs)), m.away
}

// Forget implements share.Lister.
func (m *Memory) Forget(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away == nil && m.blobs[key] != nil {
		delete(m.blobs, key)
		m.puts[key]++
	}
	return m.away
}

// Turn implements share.Store.
func (m *Memory) Turn(ctx context.Context, key string, f func(share.Reading) ([]byte, error)) error {
	return share.Retry(ctx, func() (bool, error) {
		r, put, err := m.read(key)
		if err != nil {
			return false, err
		}
		blob, err := f(r)
		if err != nil {
			return false, err
		}
		return m.put(key, put, blob)
	})
}

func (m *Memory) read(key string) (share.Reading, int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now().UnixNano()
	return share.Reading{Clock: now, Wall: now, Incarnation: strconv.Itoa(m.again), Blob: m.blobs[key]}, m.puts[key],
		m.away
}

func (m *Memory) put(key string, read int, blob []byte) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away != nil || m.puts[key] != read {
		return false, m.away
	}
	if m.blobs == nil {
		m.blobs = map[string][]byte{}
	}
	if m.puts == nil {
		m.puts = map[string]int{}
	}
	m.blobs[key] = blob
	m.puts[key]++
	return true, nil
}
