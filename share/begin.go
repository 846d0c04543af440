package share

import (
	"context"
	"errors"

	"github.com/paceline-go/paceline/internal/core/node"
)

// errThere ends the turn of Begin at a limit that its store has.
var errThere = errors.New("share: the limit is there")

// Begin makes the limit of c in a store that does not have it, and grants may go at once. Call it only
// if nothing was sent lately that counts at the server, by any process. A limit that its first Member
// makes grants nothing for 7 s and a window, since a new store looks like one that has lost its data.
//
// It returns false, and changes nothing, if the store has the limit. Errors are those of New and of the
// store. After an error of the store it is unknown whether the limit is there.
func Begin(ctx context.Context, c Config) (bool, error) {
	m, err := New(c)
	if err != nil {
		return false, err
	}
	err = m.config.Store.Turn(ctx, c.Name, func(r Reading) ([]byte, error) {
		if len(r.Blob) > 0 {
			return nil, errThere
		}
		return node.Rested(m.config.node(), &r), nil
	})
	if errors.Is(err, errThere) {
		return false, nil
	}
	return err == nil, err
}
