package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// platform is an operating system and an architecture that the programs are built for.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"},
	{"windows", "arm64"},
}

func main() {
	out := flag.String("out", "", "the folder to write to; it may not have files of another release")
	tag := flag.String("tag", "",
		"the version's tag, of those at HEAD (if empty, the only one; if there is none, it is a snapshot of the commit)")
	only := flag.String("only", "", "platforms to build for, such as linux/amd64,windows/arm64 (if empty, all)")
	flag.Parse()
	err := fmt.Errorf("--out is missing; it is a folder")
	if *out != "" && flag.NArg() == 0 {
		err = release(*out, *tag, *only)
	} else if flag.NArg() > 0 {
		err = fmt.Errorf("unexpected %q: only flags are known", flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// build has the state of a release that is being made.
type build struct {
	source
	out    string // the folder for the files of the release
	tmp    string
	shared []file // the files that go beside the programs on every platform
}

func release(out, tag, only string) error {
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	src, err := readSource(tag)
	if err != nil {
		return err
	}
	if err := emptied(out); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	b := &build{source: src, out: out, tmp: tmp}
	if b.shared, err = b.documents(); err != nil {
		return err
	}
	paceline := map[platform]file{}
	for _, p := range chosen {
		fmt.Println("building", b.tag, "for", p)
		programs, err := b.programs(p)
		if err != nil {
			return err
		}
		paceline[p] = programs[0]
		if err := b.archive(p, programs); err != nil {
			return err
		}
		if p.os == "linux" {
			if err := b.deb(p, programs); err != nil {
				return err
			}
		}
	}
	if err := b.image(paceline); err != nil {
		return err
	}
	if err := b.npm(paceline); err != nil {
		return err
	}
	if err := b.clients(); err != nil {
		return err
	}
	return b.sums()
}

// choose reads --only.
func choose(only string) ([]platform, error) {
	if only == "" {
		return platforms, nil
	}
	var chosen []platform
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(platforms, func(p platform) bool { return p.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("--only %s: there is no platform %q; there are %v", only, name, platforms)
		}
		chosen = append(chosen, platforms[i])
	}
	return chosen, nil
}

// emptied makes an empty folder, so that SHA256SUMS has no files of an earlier build.
func emptied(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s is not empty: it has %s; name a folder that is", dir, entries[0].Name())
	}
	return err
}

// documents returns the files that go beside the programs, which are the same on every platform.
func (b *build) documents() ([]file, error) {
	var files []file
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		data, err := os.ReadFile(filepath.Join(b.root, name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: name, data: data})
	}
	notices, err := b.notices()
	if err != nil {
		return nil, err
	}
	files = append(files, file{name: "THIRD_PARTY.txt", data: notices})
	for _, c := range commands {
		written, err := b.manual(c, platform{runtime.GOOS, runtime.GOARCH})
		if err != nil {
			return nil, err
		}
		files = append(files, written...)
	}
	return files, nil
}
