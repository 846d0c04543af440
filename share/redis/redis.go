// Package redis keeps shared limits in Redis 7. Each limit is one key, a hash of a version and a
// blob. Redis needs no disk for it. After a restart or a failover it has another run_id, and every
// limit is quiet until no earlier grant counts.
//
// It needs EVALSHA, EVAL, HMGET, HGET, HSET, TIME and INFO on the keys that begin with the prefix,
// and SCAN and DEL for Names and Forget.
package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/share"
	"github.com/redis/go-redis/v9"
)

// Store is a Redis that keeps shared limits. It is a share.Store. Safe for concurrent use.
type Store struct {
	client redis.UniversalClient
	prefix string
}

// New returns a Store of a client of any kind: one server, a cluster, or sentinels. Keys begin with
// prefix; if that is empty, "paceline:". The caller keeps the client, and closes it. Its options
// should have ContextTimeoutEnabled. Otherwise a server that hangs holds up a turn for ReadTimeout.
func New(client redis.UniversalClient, prefix string) *Store {
	if prefix == "" {
		prefix = "paceline:"
	}
	return &Store{client, prefix}
}

// Open returns a Store of one server, at an address such as redis://user:password@host:6379/0.
// Close it after use.
func Open(url string) (*Store, error) {
	if _, err := secret.ParseAddress(url); err != nil { // the client's own error quotes the address
		return nil, fmt.Errorf("share/redis: %w", err)
	}
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("share/redis: %w", err)
	}
	o.MaxRetries = -1              // a put that the client repeats would seem to have lost the race
	o.ContextTimeoutEnabled = true // otherwise a server that hangs holds up a turn, and Close, for its own 5 s
	return New(redis.NewClient(o), ""), nil
}

// Close closes the client. Close the Members first.
func (s *Store) Close() error { return s.client.Close() }

var read = redis.NewScript(`
local r = redis.call('HMGET', KEYS[1], 'v', 'b')
return {redis.call('TIME'), r[1] or '', r[2] or '', redis.call('INFO', 'server')}`)

// put may be called again by a client that got no answer.
var put = redis.NewScript(`
local v = redis.call('HGET', KEYS[1], 'v') or ''
if v == ARGV[2] then return 1 end
if v ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'v', ARGV[2], 'b', ARGV[3])
return 1`)

// Turn implements share.Store.
func (s *Store) Turn(ctx context.Context, key string, f func(share.Reading) ([]byte, error)) error {
	return share.Retry(ctx, func() (bool, error) {
		answer, err := read.Run(ctx, s.client, []string{s.prefix + key}).Slice()
		if err != nil {
			return false, fmt.Errorf("share/redis: %w", err)
		}
		r, version, err := reading(answer)
		if err != nil {
			return false, err
		}
		blob, err := f(r)
		if err != nil {
			return false, err
		}
		next := strconv.FormatUint(rand.Uint64(), 36) // random, so that a late put fits no key that was made again
		done, err := put.Run(ctx, s.client, []string{s.prefix + key}, version, next, blob).Int()
		if err != nil {
			return false, fmt.Errorf("share/redis: %w", err)
		}
		return done == 1, nil
	})
}

// reading reads the script's answer.
func reading(answer []any) (r share.Reading, version string, err error) {
	wrong := fmt.Errorf("share/redis: an answer that is not the script's: %.200v", answer)
	if len(answer) != 4 {
		return r, "", wrong
	}
	at, _ := answer[0].([]any)
	version, _ = answer[1].(string)
	blob, _ := answer[2].(string)
	info, _ := answer[3].(string)
	if len(at) != 2 {
		return r, "", wrong
	}
	seconds, err1 := strconv.ParseInt(fmt.Sprint(at[0]), 10, 64)
	micros, err2 := strconv.ParseInt(fmt.Sprint(at[1]), 10, 64)
	if err1 != nil || err2 != nil {
		return r, "", wrong
	}
	_, id, found := strings.Cut(info, "run_id:")
	if !found {
		return r, "", fmt.Errorf("share/redis: INFO has no run_id")
	}
	id, _, _ = strings.Cut(id, "\r")
	r.Clock = seconds*1e9 + micros*1e3
	r.Wall, r.Incarnation = r.Clock, id
	if version != "" {
		r.Blob = []byte(blob)
	}
	return r, version, nil
}

// Names implements share.Lister, by SCAN. In a cluster it returns the names of one server only.
func (s *Store) Names(ctx context.Context) (all []string, err error) {
	each := s.client.Scan(ctx, 0, escaped.Replace(s.prefix)+"*", 1000).Iterator()
	for each.Next(ctx) {
		all = append(all, strings.TrimPrefix(each.Val(), s.prefix))
	}
	if err := each.Err(); err != nil {
		return nil, fmt.Errorf("share/redis: %w", err)
	}
	slices.Sort(all)
	return slices.Compact(all), nil // SCAN may return a name twice
}

// escaped quotes the characters that have a meaning in a pattern.
var escaped = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// Forget implements share.Lister, by DEL.
func (s *Store) Forget(ctx context.Context, key string) error {
	if err := s.client.Del(ctx, s.prefix+key).Err(); err != nil {
		return fmt.Errorf("share/redis: %w", err)
	}
	return nil
}
