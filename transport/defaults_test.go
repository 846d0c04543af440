package transport_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// The comment of Config has each field once, in the order of the fields.
func TestFieldsAreInGroups(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "transport.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var fields, listed []string
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.TYPE || g.Specs[0].(*ast.TypeSpec).Name.Name != "Config" {
			continue
		}
		for _, f := range g.Specs[0].(*ast.TypeSpec).Type.(*ast.StructType).Fields.List {
			fields = append(fields, f.Names[0].Name)
		}
		for line := range strings.Lines(g.Doc.Text()) {
			if group, is := strings.CutPrefix(line, "\t"); is {
				listed = append(listed, strings.FieldsFunc(group, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })[1:]...)
			}
		}
	}
	if len(fields) == 0 || !slices.Equal(fields, listed) {
		t.Errorf("the fields are %v, and the comment lists %v", fields, listed)
	}
}

// Unset fields have the defaults that Config documents.
func TestDefaults(t *testing.T) {
	t.Run("Attempts", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBase(0, func(int, *http.Request) *http.Response { return reply(503, "") })
			if do(t, mustNew(t, transport.Config{Base: b}), get(t, "http://a.test/")); len(b.at()) != 3 {
				t.Errorf("sent %d times, want 3", len(b.at()))
			}
		})
	})
	for _, tc := range []struct{ asked, sent int }{{300, 2}, {301, 1}} {
		t.Run(fmt.Sprint("MaxRetryAfter ", tc.asked), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBase(0, func(n int, _ *http.Request) *http.Response {
					if n == 1 {
						return reply(429, "", "Retry-After", fmt.Sprint(tc.asked))
					}
					return reply(200, "")
				})
				if do(t, mustNew(t, transport.Config{Base: b}), get(t, "http://a.test/")); len(b.at()) != tc.sent {
					t.Errorf("sent %d times, want %d", len(b.at()), tc.sent)
				}
			})
		})
	}
	t.Run("MaxOutage", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			away := roundTripper(func(*http.Request) (*http.Response, error) {
				return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			})
			tr := mustNew(t, transport.Config{Base: away, Attempts: 1})
			var all sync.WaitGroup
			var mu sync.Mutex
			first := time.Hour
			for range 40 {
				all.Go(func() {
					if _, _, err := do(t, tr, get(t, "http://a.test/")); errors.Is(err, transport.ErrOutage) {
						mu.Lock()
						defer mu.Unlock()
						first = min(first, time.Since(began))
					}
				})
				time.Sleep(time.Second)
			}
			all.Wait()
			if first < 10*time.Second || first >= 20*time.Second {
				t.Errorf("the first that does not wait for the host fails after %v, want 10 s or a little more", first)
			}
		})
	})
	t.Run("Idle", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			tr := mustNew(t, transport.Config{Base: newBase(0, ok)})
			do(t, tr, get(t, "http://a.test/"))
			for i, want := range []int{2, 3, 3} { // at last the first was idle for an hour and a half, the second not for an hour
				time.Sleep(30*time.Minute - time.Second)
				do(t, tr, get(t, fmt.Sprintf("http://%d.test/", i)))
				if leaves, _, _ := transport.Remembered(tr); leaves != want {
					t.Errorf("%d partitions are remembered, want %d", leaves, want)
				}
			}
		})
	})
	t.Run("MaxPartitions", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			tr := mustNew(t, transport.Config{Base: newBase(0, ok)})
			for i := range 4100 {
				do(t, tr, get(t, "http://a.test/", "Authorization", fmt.Sprint("Bearer ", i)))
			}
			if leaves, _, _ := transport.Remembered(tr); leaves != 4096 {
				t.Errorf("%d partitions are remembered, want 4096", leaves)
			}
		})
	})
}

// A configuration that makes no sense is refused by the name of the field; one at the edge is not.
func TestConfigThatMakesNoSense(t *testing.T) {
	for says, c := range map[string]transport.Config{
		"Attempts -1":         {Attempts: -1},
		"MaxBody -1":          {MaxBody: -1},
		"Uncounted -1":        {Uncounted: -1},
		"MaxPartitions -1":    {MaxPartitions: -1},
		"Idle -1ns":           {Idle: -1},
		"Backoff":             {Backoff: backoff.Policy{Max: -1}},
		"AttemptTimeout -1ns": {AttemptTimeout: -1},
		"Adaptive":            {Adaptive: &limit.AdaptiveConfig{Min: -1}},
		"Adopt":               {Adopt: func(mono.Time, transport.Partition, limit.Limiter, []provider.Policy) {}},
		"Fill -1":             {Fill: -1},
		"MaxWaiting -1":       {MaxWaiting: -1},
		"PerSecond":           {PerSecond: true},
		"Preset":              {Preset: "no such preset"},
		"does not foresee":    {Fill: 1, Limiter: blind{}},
	} {
		if tr, err := transport.New(c); tr != nil || err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	if _, err := transport.New(transport.Config{
		Attempts: 1, MaxBody: 1, Uncounted: 1, MaxPartitions: 1, Idle: 1, AttemptTimeout: 1, Fill: 1, MaxWaiting: 1, Adaptive: &limit.AdaptiveConfig{},
	}); err != nil {
		t.Error(err)
	}
	if transport.Must(transport.Config{Base: newBase(0, ok)}) == nil {
		t.Error("Must returns nothing")
	}
	defer func() {
		if v, _ := recover().(string); !strings.Contains(v, "Attempts -1") {
			t.Errorf("Must panicked with %q", v)
		}
	}()
	transport.Must(transport.Config{Attempts: -1})
}
