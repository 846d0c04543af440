package sqlite_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/share/sqlite"
)

// Processes start together, at a file that none has made yet: each opens it, and has its turn.
func TestOpenedAtOnce(t *testing.T) {
	for range 20 {
		file := filepath.Join(t.TempDir(), "limits.db")
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				s, err := sqlite.Open(file)
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				if err := s.Turn(context.Background(), "a", func(share.Reading) ([]byte, error) { return []byte("b"), nil }); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}
