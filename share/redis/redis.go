package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/paceline-go/paceline/share"
	"github.com/redis/go-redis/v9"
)

// Store is a Redis that keeps shared limits. It is a share.Store. Safe for concurrent use.
type Store struct {
	prefix string
	// cluster makes a client of the cluster that the server belongs to; nil: the client is none of
	// one server.
	cluster func() redis.UniversalClient

	mu     sync.Mutex
	client redis.UniversalClient
}

// New returns a Store of a client of any kind: one server, a cluster, or sentinels. Keys begin with
// prefix; if that is empty, "paceline:". The caller keeps the client, and closes it. Its options
// should have ContextTimeoutEnabled. Otherwise a server that hangs holds up a turn for ReadTimeout.
func New(client redis.UniversalClient, prefix string) *Store {
	if prefix == "" {
		prefix = "paceline:"
	}
	return &Store{client: client, prefix: prefix}
}

// Close closes the client. Close the Members first.
func (s *Store) Close() error { return s.now().Close() }

func (s *Store) now() redis.UniversalClient {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

// join goes on with a client of the cluster, if the server belongs to one.
func (s *Store) join() (joined bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster == nil {
		return false, nil
	}
	one := s.client
	s.client, s.cluster = s.cluster(), nil
	return true, one.Close()
}

// run runs a script. If the server says that another one of its cluster has the key, it asks that
// one.
func (s *Store) run(ctx context.Context, script *redis.Script, key string, args ...any) *redis.Cmd {
	cmd := script.Run(ctx, s.now(), []string{s.prefix + key}, args...)
	if _, moved := redis.IsMovedError(cmd.Err()); moved {
		if joined, _ := s.join(); joined {
			return script.Run(ctx, s.now(), []string{s.prefix + key}, args...)
		}
	}
	return cmd
}

// explained adds to a server's error what it lacks for people.
func explained(err error) error {
	if strings.Contains(err.Error(), "unknown command") {
		err = fmt.Errorf("%w; of a Sentinel, the address has ?master_name=NAME", err)
	}
	return fmt.Errorf("share/redis: %w", err)
}

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
		answer, err := s.run(ctx, read, key).Slice()
		if err != nil {
			return false, explained(err)
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
		done, err := s.run(ctx, put, key, version, next, blob).Int()
		if err != nil {
			return false, explained(err)
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

// Names implements share.Lister, by SCAN of each server of a cluster.
func (s *Store) Names(ctx context.Context) (all []string, err error) {
	if info, err := s.now().Info(ctx, "server").Result(); err == nil && strings.Contains(info, "redis_mode:cluster") {
		if _, err := s.join(); err != nil {
			return nil, explained(err)
		}
	}
	var mu sync.Mutex
	scan := func(ctx context.Context, of *redis.Client) error {
		each := of.Scan(ctx, 0, escaped.Replace(s.prefix)+"*", 1000).Iterator()
		for each.Next(ctx) {
			mu.Lock()
			all = append(all, strings.TrimPrefix(each.Val(), s.prefix))
			mu.Unlock()
		}
		return each.Err()
	}
	switch client := s.now().(type) {
	case *redis.ClusterClient:
		err = client.ForEachMaster(ctx, scan)
	case *redis.Client:
		err = scan(ctx, client)
	default:
		err = fmt.Errorf("a %T does not list its keys", client)
	}
	if err != nil {
		return nil, explained(err)
	}
	slices.Sort(all)
	return slices.Compact(all), nil // SCAN may return a name twice
}

// escaped quotes the characters that have a meaning in a pattern.
var escaped = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// forget is a script, since a script finds the server of a key.
var forget = redis.NewScript(`return redis.call('DEL', KEYS[1])`)

// Forget implements share.Lister, by DEL.
func (s *Store) Forget(ctx context.Context, key string) error {
	if err := s.run(ctx, forget, key).Err(); err != nil {
		return explained(err)
	}
	return nil
}
