package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// oddAddresses are addresses with the passwords of people: as they are, or with slips around them.
func oddAddresses(schemes ...string) (all []string) {
	for _, scheme := range schemes {
		for _, user := range []string{"app:", ":", ""} {
			for _, password := range []string{
				"SECRETa", "SECRETa@SECRETb", "SECRETa/SECRETb", "12/SECRETa", "12?SECRETa", "12?SECRETa=SECRETb", "12#SECRETa",
				"SECRETa%zz", "SECRETa%", "SECRETa SECRETb", "SECRETa:SECRETb/", "[SECRETa", "SECRETa@SECRETb/3:x", `SECRETa"\SECRETb`, "SECRETä",
			} {
				if user == "" && strings.HasPrefix(scheme, "postgres") && password == "SECRETa" {
					continue // the name of a user
				}
				all = append(all, fmt.Sprintf("%s%s%s@127.0.0.1:1/0", scheme, user, password))
			}
		}
		all = append(all, scheme+"127.0.0.1:1/0?password=SECRETa", scheme+"127.0.0.1:1/?sslpassword=SECRET%zz")
	}
	return all
}

// No part of a password is in what any command prints of an address, whatever its signs and the
// slips around it. The hint how to write it is there.
func TestNoPasswordOfAnAddress(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := urlFile(t, "http://127.0.0.1:1", 1)
	config := func(share, to string) string {
		path := filepath.Join(dir, "proxy.yaml")
		text := fmt.Sprintf("version: 1\nupstreams:\n  - name: a\n    to: %q\n    limits: [20/s]\n", to)
		if share != "" {
			text += fmt.Sprintf("share: {store: %q}\n", share)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	try := func(hint bool, args ...string) {
		t.Helper()
		var out strings.Builder
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		code := execute(ctx, args, strings.NewReader(""), &out, &out)
		if strings.Contains(out.String(), "SECRET") || code == 0 || hint && !strings.Contains(out.String(), "@ is %40, / is %2F") {
			t.Errorf("%q: exit %d, and\n%s", args, code, out.String())
		}
	}
	for i, address := range oddAddresses("Redis://", "postgres://", "redis:/", "rediss//:", "") {
		switch i % 4 { // one function opens all
		case 0:
			try(false, "share", "ls", address)
		case 1:
			try(false, "share", "forget", address, "x")
		case 2:
			try(false, "run", file, "--limit", "20/s", "--share", address, "--out", filepath.Join(dir, "out.jsonl"))
		default:
			try(false, "proxy", "--to", "http://127.0.0.1:1", "--limit", "20/s", "--listen", "127.0.0.1:0", "--admin", "off", "--share", address)
		}
	}
	for i, address := range oddAddresses("http://", "http:/", "h2c://") {
		switch i % 4 {
		case 0:
			try(false, "proxy", "--to", address, "--limit", "20/s", "--listen", "127.0.0.1:0", "--admin", "off")
		case 1:
			try(false, "explain", address, "--timeout", "1s")
		case 2:
			try(false, "proxy", "check", config("", address))
		default:
			try(false, "run", address, "--limit", "20/s")
		}
	}
	for _, address := range []string{"postgres://a:SECRETa@SECRETb@h/db", "redis://:SECRETa/b@h", "postgres://a:12#SECRET@h/db"} {
		try(true, "share", "ls", address)
		try(false, "proxy", "--config", config(address, "http://127.0.0.1:1"))
	}
	try(true, "proxy", "--to", "http://a:SECRET/x@127.0.0.1:1", "--limit", "20/s", "--listen", "127.0.0.1:0", "--admin", "off")
	lines := filepath.Join(dir, "lines.jsonl")
	for _, line := range []string{`{"url":"http://a:SECRET/x@127.0.0.1:1/"}`, `{"url":"http://127.0.0.1:SECRET@1/x?token=SECRET"}`, `{"url":"ftp://127.0.0.1/?api_key=SECRET"}`, "http://a:SECRET/x@127.0.0.1:1/"} {
		if err := os.WriteFile(lines, []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		try(false, "run", lines, "--limit", "20/s", "--out", filepath.Join(dir, "lines.out.jsonl"))
	}
}
