//go:build unix

package launch

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/paceline-go/paceline/internal/app/capture"
	"github.com/paceline-go/paceline/internal/app/forward"
)

// insideOf is the variable with what a process inside has to make, as JSON.
const insideOf = "PACELINE_INSIDE"

type inside struct {
	Path string
	capture.Inside
}

// captured is the command that becomes the program in namespaces of its own: paceline is run there once
// more, by Inside.
func captured(path string, program []string, m Made, env []string) (by string, line, with []string, err error) {
	in := inside{path, capture.Inside{Socket: m.Socket, Local: m.Local, Files: map[string]string{}}}
	for _, name := range forward.Roots {
		in.Files[name] = m.Bundle
	}
	in.Files["/etc/ssl/certs/java/cacerts"] = filepath.Join(m.Folder.Public, javaStore)
	for name, text := range map[string]func(string) string{"/etc/hosts": ownHosts, "/etc/nsswitch.conf": byDNS} {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // what is not there is not replaced
		}
		if in.Files[name], err = m.Folder.write(m.Folder.Public, filepath.Base(name), text(string(b)), 0o644); err != nil {
			return "", nil, nil, err
		}
	}
	said, err := json.Marshal(in)
	if err != nil {
		return "", nil, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return "", nil, nil, err
	}
	by, line, err = capture.Command(append([]string{self, "exec", "--inside", "--"}, program...)...)
	return by, line, append(env, insideOf+"="+string(said)), err
}

// Inside enters the namespaces, and becomes the program. It returns only after an error.
func Inside(program []string) error {
	runtime.LockOSThread() // rights are those of a thread
	var in inside
	err := json.Unmarshal([]byte(os.Getenv(insideOf)), &in)
	if err == nil {
		err = os.Unsetenv(insideOf)
	}
	if err == nil {
		err = capture.Enter(in.Inside)
	}
	if err != nil {
		return err
	}
	return &os.PathError{Op: "exec", Path: in.Path, Err: syscall.Exec(in.Path, program, os.Environ())}
}

// ownHosts keeps the names of this machine alone. All others are asked for, so that they are known.
func ownHosts(hosts string) string {
	var kept strings.Builder
	for line := range strings.Lines(hosts) {
		text, _, _ := strings.Cut(line, "#")
		fields := strings.Fields(text)
		if len(fields) < 2 {
			continue
		}
		a, err := netip.ParseAddr(fields[0])
		if err != nil || !a.IsLoopback() {
			continue
		}
		for _, name := range fields[1:] {
			if name == "localhost" || strings.HasPrefix(name, "localhost.") || strings.HasPrefix(name, "ip6-") {
				kept.WriteString(fields[0] + " " + name + "\n")
			}
		}
	}
	return kept.String()
}

// byDNS has names looked up in files and by DNS: other ways know no address of ours.
func byDNS(nsswitch string) string {
	var all strings.Builder
	for line := range strings.Lines(nsswitch) {
		if name, _, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "hosts" {
			line = "hosts: files dns\n"
		}
		all.WriteString(line)
	}
	return all.String()
}
