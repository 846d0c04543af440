package redis_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/share/redis"
	"github.com/paceline-go/paceline/share/sharetest"
	client "github.com/redis/go-redis/v9"
)

// puts has a turn put something at a new Store of the address, and returns what was there.
func puts(t *testing.T, address, key, blob string) (was string) {
	t.Helper()
	err := opener(address)(t).Turn(t.Context(), key, func(r share.Reading) ([]byte, error) {
		was = string(r.Blob)
		return []byte(blob), nil
	})
	if err != nil {
		t.Fatalf("%s: %v", address, err)
	}
	return was
}

// Three servers are a cluster. Whichever of them the address names, the same limits are there.
func TestCluster(t *testing.T) {
	t.Parallel()
	servers := redisCluster(t)
	var hosts []string
	for _, s := range servers {
		hosts = append(hosts, strings.TrimPrefix(s.URL, "redis://"))
	}
	addresses := []string{servers[0].URL, servers[1].URL, servers[2].URL, "redis://" + strings.Join(hosts, ",")}
	t.Run("store", func(t *testing.T) { sharetest.Run(t, opener(addresses[1])) })
	var keys []string
	for i := range 12 {
		key := fmt.Sprintf("limit %d of {%d}", i, i%3)
		keys = append(keys, key)
		if was := puts(t, addresses[i%4], key, "one"); was != "" {
			t.Errorf("%s has %q", key, was)
		}
		if was := puts(t, addresses[(i+1)%4], key, "two"); was != "one" {
			t.Errorf("at another server %s has %q", key, was)
		}
	}
	slices.Sort(keys)
	for _, address := range addresses {
		s := opener(address)(t).(*redis.Store)
		names, err := s.Names(t.Context())
		names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, "limit ") })
		if err != nil || !slices.Equal(names, keys) {
			t.Errorf("%s lists %q, not %q: %v", address, names, keys, err)
		}
	}
	for _, s := range servers { // as docs/machines.md has it
		o, err := client.ParseURL(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		c := client.NewClient(o)
		defer c.Close()
		grants := "ACL SETUSER proxies on >secret ~paceline:* +eval +evalsha +hmget +hget +hset +time +info +scan +del +cluster +command"
		var args []any
		for word := range strings.FieldsSeq(grants) {
			args = append(args, word)
		}
		if err := c.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	granted := strings.Replace(addresses[2], "//", "//proxies:secret@", 1)
	for _, key := range keys {
		puts(t, granted, key, "three")
	}
	if names, err := opener(granted)(t).(*redis.Store).Names(t.Context()); err != nil || len(names) < len(keys) {
		t.Errorf("a user with few rights lists %q: %v", names, err)
	}
	if err := opener(addresses[0])(t).(*redis.Store).Forget(t.Context(), keys[5]); err != nil {
		t.Error(err)
	}
	if was := puts(t, addresses[3], keys[5], ""); was != "" {
		t.Errorf("a limit that was forgotten has %q", was)
	}
}

// Sentinels say which server is the master. When that is away, the one that takes over is used.
func TestSentinel(t *testing.T) {
	t.Parallel()
	master := need.Redis(t)
	replica := need.RedisWith(t, "--replicaof", "127.0.0.1", fmt.Sprint(master.Port))
	watch := sentinel(t, "limits", master)
	if was := puts(t, watch.URL+"/0?master_name=limits", "a", "one"); was != "" {
		t.Errorf("a new key has %q", was)
	}
	if was := puts(t, master.URL, "a", "two"); was != "one" {
		t.Errorf("the master has %q", was)
	}
	err := opener(watch.URL)(t).Turn(t.Context(), "a", func(share.Reading) ([]byte, error) { return nil, nil })
	if err == nil || !strings.Contains(err.Error(), "?master_name=NAME") {
		t.Errorf("a Sentinel without a name of its master: %v", err)
	}
	s := opener(watch.URL + "/0?master_name=limits")(t)
	var first, then string
	turn := func(to *string) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return s.Turn(ctx, "a", func(r share.Reading) ([]byte, error) {
			*to = r.Incarnation
			return []byte("three"), nil
		})
	}
	if err := turn(&first); err != nil {
		t.Fatal(err)
	}
	if !knows(watch, "limits", replica) {
		t.Fatal("the Sentinel has not found the replica")
	}
	master.Crash()
	for range 300 {
		if err = turn(&then); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil || then == first || then == "" {
		t.Errorf("after the master crashed: %v, incarnations %q and %q", err, first, then)
	}
}

// A socket, TLS with a CA of one's own, and passwords of any signs.
func TestWays(t *testing.T) {
	t.Parallel()
	const password = `p@s/s?#%:[ü" \&=+`
	dir := t.TempDir()
	ca := need.Certificate(t, dir)
	socket := filepath.Join(dir, "redis.sock")
	port := need.FreePort(t)
	s := need.RedisWith(t, "--requirepass", password, "--unixsocket", socket, "--tls-port", fmt.Sprint(port), "--tls-cert-file", ca.Cert, "--tls-key-file", ca.Key,
		"--tls-ca-cert-file", ca.Root, "--tls-auth-clients", "optional")
	escaped := ":" + url.QueryEscape(password) + "@"
	escaped = strings.ReplaceAll(escaped, "+", "%20")
	q := url.Values{"sslrootcert": {ca.Root}}
	was := ""
	for i, address := range []string{
		"redis://" + escaped + strings.TrimPrefix(s.URL, "redis://") + "/0",
		"REDIS://default" + escaped + strings.TrimPrefix(s.URL, "redis://"),
		"unix://" + escaped + socket,
		fmt.Sprintf("rediss://%s127.0.0.1:%d?%s", escaped, port, q.Encode()),
		fmt.Sprintf("rediss://%slocalhost:%d/0?skip_verify=true", escaped, port),
		fmt.Sprintf("rediss://%s127.0.0.1:%d?sslrootcert=%s&sslcert=%s&sslkey=%s", escaped, port, url.QueryEscape(ca.Root), url.QueryEscape(ca.Cert), url.QueryEscape(ca.Key)),
	} {
		if got := puts(t, address, "a", fmt.Sprint(i)); got != was {
			t.Errorf("%s has %q, not %q", address, got, was)
		}
		was = fmt.Sprint(i)
	}
	for address, why := range map[string]string{
		fmt.Sprintf("rediss://%s127.0.0.1:%d", escaped, port):     "certificate",
		"redis://:other@" + strings.TrimPrefix(s.URL, "redis://"): "WRONGPASS",
		s.URL:                              "NOAUTH",
		"unix://" + escaped + socket + "x": "no such file",
		fmt.Sprintf("redis://%s127.0.0.1:%d", escaped, port): "",
	} {
		err := opener(address)(t).Turn(t.Context(), "a", func(share.Reading) ([]byte, error) { return nil, nil })
		if err == nil || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "p@s") || strings.Contains(err.Error(), "p%40s") {
			t.Errorf("%s: %v", address, err)
		}
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"redis://h?sslrootcert=" + ca.Root, "rediss://h?sslrootcert=" + dir + "/none", "rediss://h?sslrootcert=" + empty, "rediss://h?sslcert=" + ca.Cert, "unix://", "redis://h/x"} {
		if s, err := redis.Open(address); err == nil {
			s.Close()
			t.Errorf("%s is open", address)
		}
	}
}
