//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/permit"
)

// FuzzJoin reads what runs send to their daemon. Each message is an error, without the secrets in it, or a
// run with servers and with a temporary folder.
func FuzzJoin(f *testing.F) {
	const hidden = "hidden-7654321"
	for _, flags := range []string{
		`"--to=https://api.example.com","--limit=20/s"`, `"--preset=openai:tier1","--weight=3"`, `"--to=http://[::1]:9","--limit=5/1.5s","--quiet=true"`,
		`"--to=https://api.example.com","--limit=20/s","--key-env=K","--header=X-Key: {key}"`, `"--key-env=K"`, `"--limit=x"`, `"--to=:"`,
		`"--head-start=-1s","--to=https://a","--limit=1/s"`, `"--keeper=1"`, `"--inside=true"`, `"-q"`, `"--"`, `"x"`,
	} {
		f.Add([]byte(`{"program":"python","flags":[`+flags+`],"temp":"/tmp","env":{"K":"`+hidden+`"}}`), 7)
	}
	f.Add([]byte(`{"env":{"HTTPS_PROXY":"http://user:`+hidden+`@127.0.0.1:1"}}`), 7)
	f.Add([]byte(`{"flags":["--to=https://a","--limit=1/s"]}`), 0)
	f.Add([]byte(`null`), 1)
	f.Add([]byte(`{"flags":{}}`), 1)
	for _, name := range outward { // those of the daemon are not in the messages
		f.Setenv(name, "")
	}
	f.Fuzz(func(t *testing.T, b []byte, pid int) {
		var j joining
		if bytes.Contains(b, []byte("file")) || bytes.Contains(b, []byte("config")) || json.Unmarshal(b, &j) == nil && strings.Contains(strings.Join(j.Flags, " "), "@") {
			t.Skip("a file of this machine, of which the fuzzer would read any")
		}
		run, x, err := new(served).read(bytes.NewReader(b), pid, discard{})
		switch {
		case err != nil && strings.Contains(err.Error(), hidden):
			t.Errorf("the error of %s has a secret: %v", b, err)
		case err == nil && (pid <= 0 || x == nil || len(run.Upstreams) == 0 || run.PID != pid || run.Client.Weight <= 0):
			t.Errorf("%s is the run %+v", b, run)
		}
	})
}

// FuzzLimitsJoin reads the limits that another paceline daemon sends. Each message is an error, or limits
// and clients of which a Server is made, or which it refuses.
func FuzzLimitsJoin(f *testing.F) {
	for _, flags := range []string{
		`"--limit=orders=20/s"`, `"--limit=orders=20/s","--limit=orders=500/d","--client=a=0.5","--head-start=a=10s"`, `"--limit=a=1000 tokens/min","--provider=a=openai"`,
		`"--limit==1/s"`, `"--limit=a b=1/s"`, `"--client=a=NaN"`, `"--head-start=a=-1s"`, `"--provider=a=x"`, `"--late=1s"`, `"x"`,
	} {
		f.Add([]byte(`{"flags":[` + flags + `]}`))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		limits, clients, err := readLimits(bytes.NewReader(b))
		if err != nil {
			return
		}
		s, err := permit.New(permit.Config{Limits: limits, Clients: clients})
		if err != nil {
			return
		}
		if err := s.Add(limits, clients); err != nil {
			t.Errorf("%s: the same again: %v", b, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
