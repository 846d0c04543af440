//go:build linux

package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

// To decrypt what a program sends costs at most 60 µs of its latency and a quarter more CPU than the
// base URL does, by the same version of HTTP. All are measured in one run, in turn, so a load of the machine is in both:
//
//	PACELINE_LONG=1 go test ./cmd/paceline -run TestDoorsCost -v
func TestDoorsCost(t *testing.T) {
	race.Without(t)
	need.LongOnly(t, "it measures the machine")
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") }))
	s.EnableHTTP2 = true
	ca := startTLS(t, s)
	base, door := need.Address(t), need.Address(t)
	bundle := filepath.Join(t.TempDir(), "bundle.pem")
	p := program(t, "proxy", "--to", s.URL, "--limit", "1000000/s", "--ca-file", ca, "--listen", base, "--admin", "off", "--log", "off",
		"--forward", door, "--forward-bundle", bundle)
	p.Stderr = os.Stderr
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Process.Kill(); _ = p.Wait() }()
	trust := x509.NewCertPool()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		b, err := os.ReadFile(bundle)
		if err == nil && trust.AppendCertsFromPEM(b) {
			break
		}
		if time.Since(began) > patient {
			t.Fatal("no bundle:", err)
		}
	}
	way := func(h2 bool) *http.Client {
		tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: door}), TLSClientConfig: &tls.Config{RootCAs: trust},
			ForceAttemptHTTP2: h2, MaxIdleConnsPerHost: 100}
		t.Cleanup(tr.CloseIdleConnections)
		return &http.Client{Transport: tr}
	}
	plain := func(h2 bool) *http.Client {
		tr := &http.Transport{MaxIdleConnsPerHost: 100, Protocols: new(http.Protocols)}
		tr.Protocols.SetHTTP1(!h2)
		tr.Protocols.SetUnencryptedHTTP2(h2)
		t.Cleanup(tr.CloseIdleConnections)
		return &http.Client{Transport: tr}
	}
	doors := []struct { // each CONNECT after the base URL of the same version of HTTP
		name, url string
		client    *http.Client
	}{{"base URL, h1", "http://" + base, plain(false)}, {"CONNECT, h1", s.URL, way(false)},
		{"base URL, h2", "http://" + base, plain(true)}, {"CONNECT, h2", s.URL, way(true)}}
	ask := func(i int) {
		r, err := doors[i].client.Get(doors[i].url + "/v1/things")
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	took := make([][]time.Duration, len(doors))
	for range 3000 {
		for i := range doors {
			began := time.Now()
			ask(i)
			took[i] = append(took[i], time.Since(began))
		}
	}
	var spent [4]time.Duration
	const rounds, each, atOnce = 20, 400, 16
	for range rounds {
		for i := range doors {
			before := ticksOf(t, p.Process.Pid)
			var all sync.WaitGroup
			for range atOnce {
				all.Go(func() {
					for range each / atOnce {
						ask(i)
					}
				})
			}
			all.Wait()
			spent[i] += ticksOf(t, p.Process.Pid) - before
		}
	}
	for i, d := range doors {
		slices.Sort(took[i])
		p50, cpu := took[i][len(took[i])/2], spent[i]/(rounds*each)
		more := p50 - took[i&^1][len(took[i&^1])/2]
		ratio := float64(spent[i]) / float64(spent[i&^1])
		t.Logf("%-12s p50 %v (%+v), CPU %v a request (%.2f ×)", d.name, p50, more, cpu, ratio)
		if i%2 == 1 && (more > 60*time.Microsecond || ratio > 1.25) {
			t.Errorf("%s: expected 60 µs and 1.25 × at most", d.name)
		}
	}
}

// ticksOf is the time on a CPU of a process.
func ticksOf(t *testing.T, pid int) time.Duration {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	all := strings.Fields(rest)
	user, err1 := strconv.Atoi(all[11])
	system, err2 := strconv.Atoi(all[12])
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return time.Duration(user+system) * time.Second / 100
}

// To start a program by exec takes at most 40 ms longer than to start it:
//
//	PACELINE_LONG=1 go test ./cmd/paceline -run TestExecStart -v
func TestExecStart(t *testing.T) {
	race.Without(t)
	need.LongOnly(t, "it measures the machine")
	paceline := filepath.Join(t.TempDir(), "paceline") // this test is larger than the program, and starts more slowly
	mustRun(t, ".", "go", "build", "-o", paceline, ".")
	var all [2][]time.Duration
	for range 25 {
		for i, c := range []*exec.Cmd{exec.Command("true"),
			exec.Command(paceline, "exec", "--to", "https://api.example.com", "--limit", "20/s", "--quiet", "--", "true")} {
			began := time.Now()
			if err := c.Run(); err != nil {
				t.Fatal(err)
			}
			all[i] = append(all[i], time.Since(began))
		}
	}
	slices.Sort(all[0])
	slices.Sort(all[1])
	t.Logf("true takes %v, and %v by exec; at best %v and %v", all[0][len(all[0])/2], all[1][len(all[1])/2], all[0][0], all[1][0])
	if more := all[1][0] - all[0][0]; more > 40*time.Millisecond { // the best: the load of the machine is in all others
		t.Errorf("%v more, expected 40ms at most", more)
	}
}
