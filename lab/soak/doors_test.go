package soak

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/daemon"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/provider/classify"
	"github.com/paceline-go/paceline/share"
)

const (
	ahead = 200              // requests that a door is given before they are sent
	ends  = 20 * time.Second // how long what is under way may take to end
	keyIn = "PACELINE_SOAK_KEY"
)

// accepts are the values of Accept-Encoding that clients send by themselves.
var accepts = []string{"", "identity", "gzip", "gzip, deflate", "gzip, deflate, br", "gzip, deflate, br, zstd", "br",
	"zstd"}

func (d *driver) count(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// next makes a request, once the door needs one.
func (k *soak) next(ctx context.Context, d *driver) (id string, ok bool) {
	for {
		c, _ := k.server.countsOf(d.door)
		d.mu.Lock()
		if d.made-d.dropped-max(c.Served, len(d.ended)) < ahead {
			d.made++
			id, ok = fmt.Sprintf("%s-%d", d.name, d.made), true
		}
		d.mu.Unlock()
		if ok {
			return id, true
		}
		select {
		case <-ctx.Done():
			return "", false
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// drop notes that nothing becomes of the requests of the last session. Otherwise they would count as
// under way in all later ones, which would be given none.
func (k *soak) drop(d *driver) {
	c, _ := k.server.countsOf(d.door)
	d.count(func() { d.dropped = max(d.made-max(c.Served, len(d.ended)), 0) })
}

// run gives `paceline run` lines through a pipe, and reads its results.
func (k *soak) run(ctx context.Context, d *driver, session int) error {
	out := filepath.Join(d.dir, fmt.Sprintf("results-%d.jsonl", session))
	c := exec.Command(k.program, "run", "-", "--out", out, "--limit", fmt.Sprintf("%d/s", perSecond), "--key-env", keyIn,
		"-H", "Authorization: Bearer {key}", "--attempts", "1000", "--log-level", "debug", "--progress", "5s")
	c.Env = append(os.Environ(), keyIn+"="+d.key)
	log, err := os.Create(filepath.Join(d.dir, fmt.Sprintf("log-%d", session)))
	if err != nil {
		return err
	}
	defer log.Close()
	c.Stdout, c.Stderr = log, log
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	var ids []string
	lines := json.NewEncoder(in)
	for ctx.Err() == nil {
		id, ok := k.next(ctx, d)
		if !ok {
			break
		}
		ids = append(ids, id)
		line := map[string]any{"id": id, "method": "POST", "url": k.url, "body": order{id}}
		if a := accepts[rand.IntN(len(accepts))]; a != "" {
			line["headers"] = map[string]string{"Accept-Encoding": a}
		}
		if lines.Encode(line) != nil {
			break // it ended: Wait says why
		}
	}
	_ = in.Close()
	defer time.AfterFunc(ends, func() { _ = c.Process.Signal(os.Interrupt) }).Stop()
	var exit *exec.ExitError
	// 3: with dead letters; 130: interrupted, and what is left can be resumed.
	if err := c.Wait(); err != nil && !(errors.As(err, &exit) && (exit.ExitCode() == 3 || exit.ExitCode() == 130)) {
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%w: %s", err, text[max(0, len(text)-1000):])
	}
	if exit != nil && exit.ExitCode() == 130 {
		for _, id := range ids { // the same command again would send what has no result
			d.left[id] = true
		}
	}
	files, err := filepath.Glob(strings.TrimSuffix(out, ".jsonl") + "*.jsonl")
	if err != nil {
		return err
	}
	for _, name := range files {
		if err := d.results(name); err != nil {
			return err
		}
	}
	return nil
}

// results reads a file of results or dead letters.
func (d *driver) results(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(text) {
		var r struct {
			ID, State string
			Repeat    bool `json:"possible_repeat"`
		}
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("%s: %w in %s", name, err, line)
		}
		d.ended[r.ID] = true
		d.sent[r.ID] = max(d.sent[r.ID], 1)
		d.named[r.ID] = d.named[r.ID] || r.Repeat
		if r.State == "done" {
			d.done(r.ID)
		}
	}
	return nil
}

// done notes a success.
func (d *driver) done(id string) {
	d.succeeded++
	d.successes = append(d.successes, id)
}

// empty counts the successes that the server never served.
func (d *driver) empty(served map[string]int) (n int) {
	for _, id := range d.successes {
		if served[id] == 0 {
			n++
		}
	}
	return n
}

// proxy has clients of `paceline proxy`, who send each request once.
func (k *soak) proxy(ctx context.Context, d *driver, session int) error {
	admin, err := freeAddress()
	if err != nil {
		return err
	}
	dir := filepath.Join(d.dir, fmt.Sprint(session))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	p, err := daemon.Start(daemon.Config{Program: k.program, Dir: dir, Env: []string{keyIn + "=" + d.key}, Args: []string{
		"proxy", "--to", strings.TrimSuffix(k.url, "/v1/batch"), "--limit", fmt.Sprintf("%d/s", perSecond), "--listen",
		"ADDRESS",
		"--key-env", keyIn, "-H", "Authorization: Bearer {key}", "--admin", admin, "--log-level", "debug",
	}})
	if err != nil {
		return err
	}
	defer p.Stop()
	var clients sync.WaitGroup
	for range 40 {
		clients.Go(func() {
			for ctx.Err() == nil {
				id, ok := k.next(ctx, d)
				if !ok {
					return
				}
				d.ask(context.WithoutCancel(ctx), "http://"+p.Address+"/v1/batch", id)
			}
		})
	}
	clients.Wait()
	for _, page := range []string{"metrics", "snapshot.json", ""} {
		if err := save("http://"+admin+"/"+page, filepath.Join(dir, "page-"+page)); err != nil {
			return err
		}
	}
	return nil
}

// ask sends one request, as clients that ask for codings by themselves.
func (d *driver) ask(ctx context.Context, url, id string) {
	ctx, cancel := context.WithTimeout(ctx, ends)
	defer cancel()
	body, _ := json.Marshal(order{id}) // it never fails
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		panic(err) // of a URL that was tried before
	}
	req.Header.Set("Accept-Encoding", accepts[rand.IntN(len(accepts))])
	resp, err := http.DefaultTransport.RoundTrip(req)
	success := false
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		success = err == nil && resp.StatusCode == http.StatusOK
	}
	d.count(func() {
		d.ended[id] = true
		d.sent[id]++
		if success {
			d.done(id)
		}
	})
}

// pool has three Pools of one limit, as three processes would, whose store goes back in time.
func (k *soak) pool(ctx context.Context, d *driver, _ int) error {
	store := &rewinding{began: time.Now()}
	var pools sync.WaitGroup
	errs := make([]error, 3)
	for i := range errs {
		pools.Go(func() { errs[i] = k.onePool(ctx, d, store, fmt.Sprint(i)) })
	}
	pools.Wait()
	d.rewound += store.rewound()
	return errors.Join(errs...)
}

func (k *soak) onePool(ctx context.Context, d *driver, store share.Store, who string) error {
	own := func() limit.Limiter { return limit.MustRolling(perSecond, time.Second) }
	member, err := share.New(share.Config{Store: store, Name: "soak", Who: who, Own: own})
	if err != nil {
		return err
	}
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer func() { _ = member.Close(context.WithoutCancel(ctx)) }()
	p, err := pool.New(pool.Config{
		Keys: []pool.Key{{Name: "one", Limiter: member, InFlight: 40}},
		Send: func(ctx context.Context, a pool.Attempt) pool.Answer { return k.attempt(ctx, d, who, a.Request.ID) },
		Ended: func(e pool.Ended) {
			d.count(func() {
				d.ended[e.Request.ID] = true
				if e.State == pool.Done {
					d.done(e.Request.ID)
				}
			})
		},
		Timeout: 20 * time.Second,
	})
	if err != nil {
		return err
	}
	go func() {
		defer time.AfterFunc(ends, cancel)
		defer p.Close()
		for ctx.Err() == nil {
			id, ok := k.next(ctx, d)
			if !ok || p.Submit(late, pool.Request{ID: id, Cost: limit.One}) != nil {
				return
			}
		}
	}()
	if err := p.Run(late); late.Err() == nil {
		return err
	}
	d.count(func() {
		for id := range d.sent {
			d.left[id] = true
		}
	})
	return nil
}

// attempt is the Send of a Pool, over the default transport of net/http, which asks for gzip.
func (k *soak) attempt(ctx context.Context, d *driver, who, id string) pool.Answer {
	body, _ := json.Marshal(order{id}) // it never fails
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, k.url, bytes.NewReader(body))
	if err != nil {
		return pool.Answer{Invalid: true, Reason: err.Error()}
	}
	req.Header.Set("Authorization", "Bearer "+d.key)
	req.Header.Set(fieldProcess, who)
	d.count(func() { d.sent[id]++ })
	began := time.Now()
	resp, err := http.DefaultTransport.RoundTrip(req)
	try := classify.From(req, resp, err)
	if err == nil {
		try.Body, try.Err = io.ReadAll(bufio.NewReader(resp.Body))
		_ = resp.Body.Close()
	}
	try.Now, try.Took = time.Now(), time.Since(began)
	var policy classify.Policy
	return policy.Of(&try).Answer()
}

// freeAddress returns an address that nobody listened at a moment ago.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// save writes what a page says to a file.
func save(url, name string) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o600)
}

// Requests without an end when a session ends leave the next session as many as the first had.
func TestSessionsAreGivenRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStranger(1)
		door, err := s.open("key")
		if err != nil {
			t.Fatal(err)
		}
		k, d := &soak{server: s}, &driver{door: door, ended: map[string]bool{}}
		for session := range 3 {
			ctx, end := context.WithTimeout(context.Background(), time.Second)
			given := 0
			for ok := true; ok; {
				if _, ok = k.next(ctx, d); ok {
					given++
				}
			}
			end()
			if given != ahead {
				t.Errorf("session %d is given %d requests", session, given)
			}
			k.drop(d)
		}
	})
}
