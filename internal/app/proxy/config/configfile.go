package config

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/app/yamlfile"
	"github.com/paceline-go/paceline/internal/text"
)

// Version is the version of the format.
const Version = 1

// Error is an error at a place in a file.
type Error = yamlfile.Error

// Source says where a file comes from, and where its references lead.
type Source struct {
	// Name is the file's name, for errors.
	Name string
	// Private: only the owner may read the file, so that it may have secrets in it.
	Private bool
	// Env looks up a variable of the environment. If nil, no variable exists.
	Env func(name string) (string, bool)
	// Open opens a file that this file names, for secrets and certificates. If nil, no such file
	// exists.
	Open func(name string) (io.ReadCloser, error)
}

// File is the content of a file.
type File struct {
	Config proxy.Config
	// From names the origin of each secret for people, by Secret and KeyHash: env OPENAI_KEY.
	From map[any]string
	// Sum is a checksum of the file and of all that it refers to. Equal sums mean that nothing has
	// changed.
	Sum [sha256.Size]byte
	// Names are the file and the files that it names.
	Names []string

	root *node
}

// Locate turns an error of the configuration into an *Error with its place in the file. Other
// errors stay as they are.
func (f *File) Locate(err error) error {
	if _, ok := errors.AsType[*proxy.ConfigError](err); !ok || f.root == nil {
		return err
	}
	r := &reader{Reader: yamlfile.New(f.Names[0])}
	r.check(f.root, err)
	return r.Err()
}

// Changes names the keys whose values differ from those of an earlier file, without the values.
func (f *File) Changes(was *File) string {
	if f.Sum == was.Sum {
		return "nothing"
	}
	if keys := yamlfile.Changes(was.root, f.root); len(keys) > 0 {
		return text.Some(keys, mostChanges)
	}
	return "what the file refers to, or its words alone"
}

// mostChanges is how many keys Changes names.
const mostChanges = 8

// Load reads a file, with an environment. Names in the file are relative to its folder.
func Load(name string, env func(string) (string, bool)) (File, error) {
	in, err := os.Open(name)
	if err != nil {
		return File{}, err
	}
	defer in.Close()
	about, err := in.Stat()
	if err != nil {
		return File{}, err
	}
	return Read(in, Source{
		Name: name, Env: env,
		Private: about.Mode().Perm()&0o077 == 0 || runtime.GOOS == "windows", // which has no such mode
		Open: func(other string) (io.ReadCloser, error) {
			return os.Open(beside(name, other))
		},
	})
}

// beside resolves a name that a file uses, relative to the folder of the file.
func beside(name, other string) string {
	if filepath.IsAbs(other) {
		return other
	}
	return filepath.Join(filepath.Dir(name), other)
}

// Read reads a file. The error is an *Error, or several of them joined in the order of their lines,
// or an error of in itself.
func Read(in io.Reader, from Source) (File, error) {
	f := File{From: map[any]string{}, Names: []string{from.Name}}
	r := &reader{Reader: yamlfile.New(from.Name), source: from, file: &f, sum: sha256.New()}
	fields := configFields()
	root, err := r.Root(io.TeeReader(in, r.sum), "configuration", yamlfile.Keys(fields))
	if err != nil || root == nil {
		return File{}, cmp.Or(err, r.Err())
	}
	yamlfile.Mapping(r, root, "", fields, &f.Config)
	if r.Ok() {
		r.reachable(root, &f.Config)
		_, err := f.Config.Checked()
		r.check(root, err)
	}
	if err := r.Err(); err != nil {
		return File{}, err
	}
	f.root = root
	f.Sum = [sha256.Size]byte(r.sum.Sum(nil))
	return f, nil
}

// reachable refuses clients that no request can belong to.
func (r *reader) reachable(root *node, config *proxy.Config) {
	c := &config.Clients
	keyed := !config.Open && slices.ContainsFunc(c.List, func(k proxy.Client) bool { return len(k.Keys) > 0 })
	addresses := map[netip.Prefix]string{}
	for i, k := range c.List {
		_, at := yamlfile.Locate(root, fmt.Sprintf("Clients.List[%d]", i), nil)
		switch {
		case len(k.Keys) > 0:
		case keyed:
			r.Refuse(at, "nobody can be the client %q: others have keys, and requests without one are refused; want keys, or "+
				"open: true", k.Name)
		case len(k.Addresses) == 0 && c.Header == "":
			r.Refuse(at, "nobody can be the client %q: want keys, addresses, or a header in clients that names it", k.Name)
		}
		for j, a := range k.Addresses {
			if who, is := addresses[a]; is {
				_, at := yamlfile.Locate(root, fmt.Sprintf("Clients.List[%d].Addresses[%d]", i, j), nil)
				r.Refuse(at, "addresses: %v is that of %q, too: nobody could tell whose a request is", a, who)
			}
			addresses[a] = k.Name
		}
	}
}

// inFile are the keys whose names differ from their fields.
var inFile = map[string]string{"counting": "count"}

// check finds the place in the file of an error of the configuration.
func (r *reader) check(root *node, err error) {
	if err == nil {
		return
	}
	field, ok := errors.AsType[*proxy.ConfigError](err)
	if !ok {
		r.Refuse(root, "%v", err)
		return
	}
	path, at := yamlfile.Locate(root, field.Field, inFile)
	r.Refuse(at, "%s: %v", path, field.Err)
}

// Schema returns the format as a JSON schema, for editors. It is made from the tables of Read. It
// checks the form of values only.
func Schema() []byte {
	return yamlfile.Schema("What paceline proxy is told", yamlfile.Object(configFields()))
}
