package share_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/core/node"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/share"
)

// journal is a Logger without instants, that can be read while it is written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// lines returns the lines written since the last call.
func (j *journal) lines() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	text := strings.TrimSuffix(j.text.String(), "\n")
	j.text.Reset()
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func (j *journal) expect(t *testing.T, when string, want ...string) {
	t.Helper()
	got := j.lines()
	if len(got) != len(want) {
		t.Errorf("%s it says\n%s\nexpected %d lines", when, strings.Join(got, "\n"), len(want))
		return
	}
	for i := range got {
		if level, text, _ := strings.Cut(want[i], " "); !strings.Contains(got[i], "level="+level) || !strings.Contains(got[i], text) {
			t.Errorf("%s it says\n%s\nexpected %s", when, got[i], want[i])
		}
	}
}

// A process that goes on with a part reports the beginning and the end of that, once each. A
// process without a part reports that. The driver gets the same as Events.
func TestSplitIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s := newMemory(), newServer(20, time.Second)
		var wg sync.WaitGroup
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		var members []*share.Member
		var gate *paceline.Gate
		join := func() *journal {
			j := new(journal)
			m, err := share.New(share.Config{Store: store, Name: "it", Own: twenty, Fallback: share.Split, Logger: j.logger()})
			if err != nil {
				t.Fatal(err)
			}
			members, gate = append(members, m), paceline.NewGate(m)
			send(ctx, &wg, gate, s, 30, new(int))
			return j
		}
		join()
		first := join()
		seen := gate
		time.Sleep(20 * time.Second)
		first.expect(t, "at first", " nothing is sent for ") // a warning of the one that came first
		store.set(func() { store.away = errors.New("the store is away") })
		time.Sleep(5 * time.Second)
		first.expect(t, "without the store", `WARN nothing is sent beyond what was granted for 8 s, and then 1/2 of the limit until it can" limit=it error="the store is away"`)
		late := join()
		time.Sleep(15 * time.Second)
		first.expect(t, "long without the store", `WARN goes on with 1/2 of the shared limit: more than the limit is sent if others still reach the store" limit=it`)
		late.expect(t, "one that came meanwhile", `WARN and there is no part of it for this process to go on with" limit=it`)
		store.set(func() { store.away = nil })
		time.Sleep(20 * time.Second)
		first.expect(t, "with the store", "INFO the shared limit is fetched again", "WARN the store is back: this process no longer goes on with 1/2 of the shared limit, after 1", "WARN nothing is sent for ")
		late.expect(t, "with the store one that came meanwhile", "INFO the shared limit is fetched again", " nothing is sent for ")
		var kinds []string
		for _, e := range seen.Snapshot().Events {
			kinds = append(kinds, e.Kind)
			if !strings.HasPrefix(e.Text, "it: ") {
				t.Errorf("an Event says %q", e.Text)
			}
		}
		if want := []string{observe.EventPaused, observe.EventDown, observe.EventAlone, observe.EventBack, observe.EventPaused}; !slices.Equal(kinds, want) {
			t.Errorf("Events %q, expected %q", kinds, want)
		}
		cancel()
		wg.Wait()
		if s.refused > 0 {
			t.Errorf("%d of %d refused", s.refused, s.sent)
		}
		for _, m := range members {
			m.Close(context.Background())
		}
	})
}

// A store that is away for another reason than before is news, once; one that stays away is not.
func TestAnotherReasonIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, store := new(journal), newMemory()
		m, gate := member(t, share.Config{Store: store, Name: "it", Own: twenty, Logger: j.logger()})
		defer m.Close(context.Background())
		p, _ := take(t, gate) // in flight, so that turns go on
		j.expect(t, "at first", "WARN nothing is sent for ")
		for _, why := range []string{"connection refused", "no route to host"} {
			store.set(func() { store.away = errors.New(why) })
			time.Sleep(10 * time.Second)
			j.expect(t, why, "WARN nothing is sent beyond what was granted\" limit=it error=\""+why+"\"")
		}
		store.set(func() { store.away = nil })
		time.Sleep(10 * time.Second)
		j.expect(t, "at the end", "INFO the shared limit is fetched again")
		p.Settle(limit.Outcome{Result: limit.Accepted})
	})
}

// A limit that all have set to another is divided as it was then.
func TestSplitOfWhatWasSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s := newMemory(), newServer(20, time.Second)
		var wg sync.WaitGroup
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		m, gate := member(t, share.Config{Store: store, Name: "it", Own: twenty, Fallback: share.Split})
		if err := m.SetLimit(func(l limit.Limiter, now mono.Time) error { return l.(*limit.Rolling).SetLimit(now, 4) }); err != nil {
			t.Fatal(err)
		}
		send(ctx, &wg, gate, s, 30, new(int))
		time.Sleep(20 * time.Second)
		store.set(func() { store.away = errors.New("the store is away") })
		time.Sleep(15 * time.Second)
		before := s.count()
		time.Sleep(10 * time.Second)
		if n := s.count() - before; n < 30 || n > 44 {
			t.Errorf("%d sent in 10 s, of 4 a second", n)
		}
		cancel()
		wg.Wait()
		m.Close(context.Background())
	})
}

// Err and the log report what is wrong with a store's content. A damaged blob counts as lost. A
// blob of another version is refused, and stays as it is.
func TestBadBlobs(t *testing.T) {
	now := time.Now()
	blob := fresh(t, now)
	newer := slices.Clone(blob[:len(blob)-4])
	newer[1] += 2 // a later version than that of nodes which leave something free
	newer = binary.BigEndian.AppendUint32(newer, crc32.ChecksumIEEE(newer))
	for name, c := range map[string]struct {
		blob []byte
		says string
		goes bool
	}{
		"damaged":          {blob[:len(blob)-7], "the blob is damaged: of ", true},
		"of something":     {[]byte("this was never one"), "the blob is damaged: it begins with 0x74, not 0xb7", true},
		"of a newer state": {newer, "the limit is kept in version 8, and this program has version 7: run the same version everywhere", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, j := newMemory(), new(journal)
				store.blobs["it"] = c.blob
				m, err := share.New(share.Config{Store: store, Name: "it", Own: twenty, Logger: j.logger()})
				if err != nil {
					t.Fatal(err)
				}
				gate := paceline.NewGate(m)
				began := time.Now()
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				defer cancel()
				go func() {
					time.Sleep(5 * time.Second)
					if err := m.Err(); err == nil || !strings.Contains(err.Error(), c.says) {
						t.Errorf("Err says %v, expected %s", err, c.says)
					}
				}()
				_, err = gate.Wait(ctx, limit.One)
				if (err == nil) != c.goes || time.Since(began) < 8*time.Second {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
				j.expect(t, "of what is there", "WARN "+c.says)
				if !c.goes && !bytes.Equal(store.blobs["it"], c.blob) {
					t.Error("it has changed")
				}
				time.Sleep(time.Second)
				if err := m.Err(); (err == nil) != c.goes {
					t.Errorf("at the end Err says %v", err)
				}
				m.Close(context.Background())
			})
		})
	}
}

// fresh is the blob of a node that came first.
func fresh(t *testing.T, now time.Time) []byte {
	t.Helper()
	n := node.New(node.Config{New: twenty, ID: "first"})
	n.Begin(0)
	blob, err := n.Read(0, 0, share.Reading{Clock: now.UnixNano(), Wall: now.UnixNano(), Incarnation: "one"})
	if err != nil {
		t.Fatal(err)
	}
	return blob
}
