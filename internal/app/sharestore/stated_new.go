package sharestore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/core/node"
	"github.com/paceline-go/paceline/share"
)

// NewFor is how long a statement of StateNew holds. Longer ones would be forgotten by who made them.
const NewFor = 10 * time.Minute

// stated begins the keys of statements in a store. No name of a limit begins like this.
const stated = "\x01new/"

// IsStatement reports whether a key of a store has a statement of StateNew, and no limit.
func IsStatement(key string) bool { return strings.HasPrefix(key, stated) }

// StateNew states that nothing was sent lately that counts in limits whose names begin with name. For
// NewFor, those that the store does not have begin at once, and not after 7 s and a window.
func StateNew(ctx context.Context, s share.Store, name string) error {
	if err := node.CheckName(stated + name); err != nil {
		return fmt.Errorf("the name %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	return s.Turn(ctx, stated+name, func(r share.Reading) ([]byte, error) {
		return append(binary.BigEndian.AppendUint64(nil, uint64(r.Wall)), r.Incarnation...), nil
	})
}

// isNew reports whether that was stated, less than NewFor ago. A store that may have lost data since has
// lost the statement, too.
func isNew(ctx context.Context, s share.Store, name string) (is bool) {
	ctx, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	err := s.Turn(ctx, stated+name, func(r share.Reading) ([]byte, error) {
		if len(r.Blob) > 8 || len(r.Blob) == 8 && r.Incarnation == "" {
			ago := time.Duration(r.Wall - int64(binary.BigEndian.Uint64(r.Blob)))
			is = string(r.Blob[8:]) == r.Incarnation && 0 <= ago && ago < NewFor
		}
		return nil, errSeen
	})
	return is && errors.Is(err, errSeen)
}
