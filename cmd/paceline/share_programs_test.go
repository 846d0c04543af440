package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/share"
)

// crew are processes of one program that share a limit at a server, each of which sends as much as
// it may.
type crew struct {
	t       *testing.T
	program string
	server  *strictly
	address string // of the store
	n       int64  // a second
	each    int    // so many requests each process of run has, and the clients of each proxy ask until that many were served for all
	file    string
	dirs    []string

	all    []*exec.Cmd
	cpu    time.Duration // of those that have ended
	asking sync.WaitGroup
	failed atomic.Int64 // what clients of proxies asked for in vain
}

// programs are what a crew may be of.
var programs = map[string]func(c *crew, i int) *exec.Cmd{
	"run": func(c *crew, i int) *exec.Cmd {
		p, _ := process(c.t, "run", c.file, "--limit", fmt.Sprintf("%d/s", c.n), "--share", c.address, "--share-name", "api", "--out", filepath.Join(c.dirs[i], "out.jsonl"), "--quiet")
		return p
	},
	"proxy": func(c *crew, _ int) *exec.Cmd {
		p, addr := sharingProxy(c.t, c.server, c.address, c.n)
		c.asking.Go(func() {
			c.failed.Add(int64(askAll(c.server, []string{addr}, int(max(c.n/8, 5)), len(c.dirs)*c.each)))
		})
		return p
	},
	"pool": func(c *crew, _ int) *exec.Cmd {
		p := exec.Command(os.Args[0], c.address, c.server.URL, fmt.Sprint(c.n))
		p.Env, p.Dir, p.Stderr = append(os.Environ(), asPool+"=1"), c.t.TempDir(), new(bytes.Buffer)
		if err := p.Start(); err != nil {
			c.t.Fatal(err)
		}
		return p
	},
}

// muster starts so many processes of a program.
func muster(t *testing.T, program string, s *strictly, address string, n int64, processes, each int) *crew {
	t.Helper()
	c := &crew{t: t, program: program, server: s, address: address, n: n, each: each, file: urlFile(t, s.URL, each)}
	for range processes {
		c.dirs = append(c.dirs, t.TempDir())
	}
	t.Cleanup(c.end)
	for i := range c.dirs {
		c.all = append(c.all, programs[program](c, i))
	}
	return c
}

// kill ends a process with -9, and another takes its place; of run, it goes on with what the first
// has left.
func (c *crew) kill(i int) {
	c.all[i].Process.Kill()
	c.ended(i)
	c.all[i] = programs[c.program](c, i)
}

func (c *crew) ended(i int) error {
	err := c.all[i].Wait()
	if s := c.all[i].ProcessState; s != nil {
		c.cpu += s.UserTime() + s.SystemTime()
	}
	return err
}

// end kills all.
func (c *crew) end() {
	for i, p := range c.all {
		p.Process.Kill()
		c.ended(i)
	}
	c.all = nil
	c.asking.Wait()
}

// finish returns when each process of run has ended, and all clients of proxies have their answers.
func (c *crew) finish() {
	c.t.Helper()
	c.asking.Wait()
	if c.program != "run" {
		c.end()
		return
	}
	for i, p := range c.all {
		if err := c.ended(i); err != nil {
			c.t.Errorf("process %d: %v\n%s", i, err, p.Stderr)
		}
	}
	c.all = nil
}

// asPool makes the test binary a program of somebody's own, whose Pool has its limit in a store.
const asPool = "PACELINE_TEST_AS_POOL"

// sendByPool sends to a server as much as it may, until it is killed. Its arguments are a store,
// the server's address, and how many a second.
func sendByPool(address, server, a string) error {
	n, err := strconv.ParseInt(a, 10, 64)
	if err != nil {
		return err
	}
	to, err := url.Parse(server)
	if err != nil {
		return err
	}
	store, err := openStore(context.Background(), address)
	if err != nil {
		return err
	}
	defer store.Close()
	member, err := share.Limiter(store, "api", perSecondKeeper(n))
	if err != nil {
		return err
	}
	const waiting = 64
	lines := make(chan *connected, waiting)
	var p *pool.Pool
	p, err = pool.New(pool.Config{
		Keys: []pool.Key{{Limiter: member}},
		Send: func(_ context.Context, a pool.Attempt) pool.Answer { return sendOne(p, &a, to.Host, lines) },
		Ended: func(pool.Ended) {
			if err := p.TrySubmit(pool.Request{}); err != nil {
				panic(err)
			}
		},
	})
	if err != nil {
		return err
	}
	for range waiting {
		if err := p.Submit(context.Background(), pool.Request{}); err != nil {
			return err
		}
	}
	return p.Run(context.Background())
}

// connected is a connection to the server.
type connected struct {
	net.Conn
	answers *bufio.Reader
}

// sendOne sends one request. It writes in its own goroutine, right after the check that it still
// may. net/http writes in another one, and a stop between the two would make the request late.
func sendOne(p *pool.Pool, a *pool.Attempt, host string, lines chan *connected) pool.Answer {
	var c *connected
	select {
	case c = <-lines:
	default:
		conn, err := net.Dial("tcp", host)
		if err != nil {
			return pool.Answer{Outcome: limit.Outcome{Result: limit.Unsent}}
		}
		c = &connected{conn, bufio.NewReader(conn)}
	}
	request := []byte("GET /x HTTP/1.1\r\nHost: " + host + "\r\n\r\n")
	if !p.Fresh(a) {
		lines <- c
		return pool.Answer{Outcome: limit.Outcome{Result: limit.Unsent}, Returned: true}
	}
	_, err := c.Write(request)
	var resp *http.Response
	if err == nil {
		resp, err = http.ReadResponse(c.answers, nil)
	}
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
	}
	if err != nil {
		c.Close()
		return pool.Answer{Outcome: limit.Outcome{Result: limit.Unknown}, Reason: err.Error()}
	}
	lines <- c
	if resp.StatusCode != http.StatusOK {
		return pool.Answer{Outcome: limit.Outcome{Result: limit.Limited}}
	}
	return pool.Answer{Outcome: limit.Outcome{Result: limit.Accepted}}
}
