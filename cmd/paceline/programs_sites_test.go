//go:build unix

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// mustRun runs a program in a folder.
func mustRun(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x@example.com",
		"GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x@example.com")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

func put(t *testing.T, dir, name string, text []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// texts serves a text at each path.
func texts(all map[string]string) func(t *testing.T, dir, site string) http.Handler {
	return func(*testing.T, string, string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text, ok := all[path.Clean(r.URL.Path)]
			if !ok {
				http.NotFound(w, r)
				return
			}
			if strings.HasPrefix(text, "{") {
				w.Header().Set("Content-Type", "application/json")
			}
			io.WriteString(w, text)
		})
	}
}

// fileTree serves ten files and their list.
func fileTree(t *testing.T, dir, _ string) http.Handler {
	for i := range 10 {
		put(t, dir, fmt.Sprint(i), []byte("text"))
	}
	return http.FileServer(http.Dir(dir))
}

// repository serves a repository as files, of which a clone asks for many.
func repository(t *testing.T, dir, _ string) http.Handler {
	work := filepath.Join(dir, "work")
	for i := range 10 {
		put(t, work, fmt.Sprint(i), fmt.Appendf(nil, "text %d", i))
	}
	mustRun(t, work, "git", "init", "-q")
	mustRun(t, work, "git", "add", ".")
	mustRun(t, work, "git", "commit", "-qm", "all")
	mustRun(t, dir, "git", "clone", "-q", "--bare", "work", "repo.git")
	mustRun(t, filepath.Join(dir, "repo.git"), "git", "update-server-info")
	return http.FileServer(http.Dir(dir))
}

// wheels serves five packages of Python.
func wheels(t *testing.T, dir, _ string) http.Handler {
	for i := range 5 {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		info := fmt.Sprintf("w%d-1.dist-info/", i)
		for name, text := range map[string]string{
			"METADATA": fmt.Sprintf("Metadata-Version: 2.1\nName: w%d\nVersion: 1\n", i),
			"WHEEL":    "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n", "RECORD": "",
		} {
			f, err := z.Create(info + name)
			if err == nil {
				_, err = io.WriteString(f, text)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		file := fmt.Sprintf("w%d-1-py3-none-any.whl", i)
		put(t, dir, file, b.Bytes())
		put(t, dir, fmt.Sprintf("simple/w%d/index.html", i), fmt.Appendf(nil, `<!DOCTYPE html><a href="/%s">%[1]s</a>`, file))
	}
	return http.FileServer(http.Dir(dir))
}

// registry serves five packages of npm.
func registry(t *testing.T, dir, site string) http.Handler {
	all := map[string]string{}
	for i := range 5 {
		name := fmt.Sprintf("a%d", i)
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		w := tar.NewWriter(z)
		text := fmt.Sprintf(`{"name":%q,"version":"1.0.0"}`, name)
		err := w.WriteHeader(&tar.Header{Name: "package/package.json", Mode: 0o644, Size: int64(len(text))})
		if err == nil {
			_, err = io.WriteString(w, text)
		}
		if err != nil || w.Close() != nil || z.Close() != nil {
			t.Fatal(err)
		}
		all["/"+name+".tgz"] = b.String()
		all["/"+name] = fmt.Sprintf(`{"name":%q,"dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":%[1]q,"version":"1.0.0",`+
			`"dist":{"tarball":"%s/%[1]s.tgz"}}}}`, name, site)
	}
	return texts(all)(t, dir, site)
}

// pagesOf30 serves lists of ten repositories, each with the address of the next.
func pagesOf30(_ *testing.T, _, site string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var page int
		fmt.Sscan(r.URL.Query().Get("page"), &page)
		if page < 2 {
			w.Header().Set("Link", fmt.Sprintf(`<https://%s/orgs/o/repos?page=%d>; rel="next"`, r.Host, page+1))
		}
		w.Header().Set("Content-Type", "application/json")
		one := fmt.Sprintf(`{"id":%d,"full_name":"o/r"}`, page)
		fmt.Fprint(w, "["+strings.Repeat(one+",", 9)+one+"]")
	})
}

// signed is a bucket that takes signed requests alone, with the fields that are signed.
func signed(t *testing.T, _, site string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if !strings.Contains(r.Header.Get("Authorization"), "SignedHeaders=") || "https://"+r.Host != site {
			t.Errorf("%s at %s is signed by %q", r.Method, r.Host, r.Header.Get("Authorization"))
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("ETag", `"x"`)
		if r.Method == http.MethodGet {
			io.WriteString(w, "v")
		}
	})
}

// grpcUnary answers each call with a message.
func grpcUnary(*testing.T, string, string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		const message = "answer"
		w.Write(append([]byte{0, 0, 0, 0, byte(len(message))}, message...))
		w.Header().Set("Grpc-Status", "0")
	})
}

// webSockets takes each connection over.
func webSockets(t *testing.T, _, _ string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := sha1.Sum([]byte(r.Header.Get("Sec-Websocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
			base64.StdEncoding.EncodeToString(key[:]))
		_, _ = io.Copy(io.Discard, c)
	})
}
