package shareflags

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	client "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/share/postgres"
	"github.com/paceline-go/paceline/share/redis"
	"github.com/paceline-go/paceline/share/sqlite"
)

// Store is a store that its opener closes.
type Store interface {
	share.Store
	io.Closer
}

type postgresStore struct{ *postgres.Store }

func (s postgresStore) Close() error {
	s.Store.Close()
	return nil
}

// schemes are the beginnings of addresses of stores.
var schemes = map[string]func(ctx context.Context, address string) (Store, error){
	"sqlite": func(_ context.Context, address string) (Store, error) {
		file, _ := File(address)
		if file == "" {
			return nil, errors.New("no file, expected sqlite:FILE")
		}
		return sqlite.Open(file)
	},
	"postgres":   openPostgres,
	"postgresql": openPostgres,
	"redis":      openRedis,
	"rediss":     openRedis,
}

// File returns the file of a store's address, if the store is a file.
func File(address string) (string, bool) { return strings.CutPrefix(address, "sqlite:") }

func openPostgres(ctx context.Context, address string) (Store, error) {
	s, err := postgres.Open(ctx, address)
	if err != nil {
		return nil, err
	}
	return postgresStore{s}, nil
}

func openRedis(_ context.Context, address string) (Store, error) {
	client.SetLogger(&logging.VoidLogger{}) // its lines would repeat this program's errors
	s, err := redis.Open(address)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// OpenStore opens a store. The error begins with its address, without a password.
func OpenStore(ctx context.Context, address string) (Store, error) {
	scheme, _, ok := strings.Cut(address, ":")
	open := schemes[scheme]
	if !ok || open == nil || scheme != "sqlite" && !isURL(address) {
		return nil, fmt.Errorf("%q, expected %s", Redacted(address), Forms)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	s, err := open(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Redacted(address), err)
	}
	return s, nil
}

func isURL(address string) bool { return strings.Contains(address, "://") }

// Redacted is an address without its password. In an address that is no URL, the place of the
// password is not known, as in host=a password=b.
func Redacted(address string) string {
	scheme, _, _ := strings.Cut(address, ":")
	switch {
	case scheme == "sqlite":
		return address
	case !isURL(address) && strings.Contains(address, "="):
		if schemes[scheme] == nil {
			return "…"
		}
		return scheme + ":…"
	}
	u, err := url.Parse(address)
	if err != nil {
		return scheme + ":…"
	}
	q := u.Query()
	for name := range q {
		if slices.Contains([]string{"password", "sslpassword"}, name) {
			q.Set(name, "xxxxx")
			u.RawQuery = q.Encode()
		}
	}
	return u.Redacted()
}
