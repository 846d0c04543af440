package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	client "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/share/postgres"
	"github.com/paceline-go/paceline/share/redis"
	"github.com/paceline-go/paceline/share/sqlite"
)

// shareStore is a store that its opener closes.
type shareStore interface {
	share.Store
	io.Closer
}

type postgresStore struct{ *postgres.Store }

func (s postgresStore) Close() error {
	s.Store.Close()
	return nil
}

// storeSchemes are the beginnings of addresses of stores.
var storeSchemes = map[string]func(ctx context.Context, address string) (shareStore, error){
	"sqlite": func(_ context.Context, address string) (shareStore, error) {
		file, _ := storeFile(address)
		if file == "" {
			return nil, errors.New("no file, expected sqlite:FILE")
		}
		return sqlite.Open(file)
	},
	"postgres":   openPostgres,
	"postgresql": openPostgres,
	"redis":      openRedis,
	"rediss":     openRedis,
	"unix":       openRedis,
}

// storeFile returns the file of a store's address, if the store is a file.
func storeFile(address string) (string, bool) {
	const scheme = "sqlite:"
	if len(address) < len(scheme) || !strings.EqualFold(address[:len(scheme)], scheme) {
		return "", false
	}
	return address[len(scheme):], true
}

func openPostgres(ctx context.Context, address string) (shareStore, error) {
	s, err := postgres.Open(ctx, address)
	if err != nil {
		return nil, err
	}
	return postgresStore{s}, nil
}

func openRedis(_ context.Context, address string) (shareStore, error) {
	client.SetLogger(&logging.VoidLogger{}) // its lines would repeat this program's errors
	s, err := redis.Open(address)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// openStore opens a store. The error begins with its address, without a password.
func openStore(ctx context.Context, address string) (shareStore, error) {
	address = strings.TrimSpace(address) // a variable that was read from a file ends with a line
	scheme, rest, ok := strings.Cut(address, ":")
	scheme = strings.ToLower(scheme)
	open := storeSchemes[scheme]
	if ok && open == nil && strings.HasPrefix(scheme, "sqlite") { // a file's name is no secret
		return nil, fmt.Errorf("%q, expected sqlite:%s", address, strings.TrimLeft(rest, "/"))
	}
	if !ok || open == nil || scheme != "sqlite" && !strings.HasPrefix(rest, "//") {
		return nil, fmt.Errorf("%q, expected %s", redactedStore(address), storeForms)
	}
	if scheme != "sqlite" {
		if _, err := secret.ParseAddress(address); err != nil {
			return nil, fmt.Errorf("%s: %w", redactedStore(address), err)
		}
	}
	const within = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	s, err := open(ctx, scheme+":"+rest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", redactedStore(address), silent(ctx, err, within))
	}
	return s, nil
}

// silent is the error of opening a store, in words if its server did not answer within the time of ctx.
func silent(ctx context.Context, err error, within time.Duration) error {
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		return fmt.Errorf("no answer within %v: expected the address of a server that runs", within)
	}
	return err
}

// redactedStore is an address without its password.
func redactedStore(address string) string {
	if _, ok := storeFile(address); ok {
		return address
	}
	return secret.SanitizeAddress(address)
}
