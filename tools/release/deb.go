package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	packed "github.com/goreleaser/nfpm/v2/files"
)

const summary = "send requests at the highest rate a server's limits allow"

// deb writes the package for Debian. The programs are static, so the package depends on no other.
// It recommends certificates, which are needed for https alone.
func (b *build) deb(p platform, programs []file) error {
	dir, err := os.MkdirTemp(b.tmp, "deb")
	if err != nil {
		return err
	}
	info := &nfpm.Info{
		Name: "paceline", Arch: p.arch, Platform: "linux", Version: b.version, Section: "web", Priority: "optional",
		Maintainer: "The maintainers of Paceline <maintainers@paceline.invalid>",
		Homepage:   "https://github.com/paceline-go/paceline",
		License:    "Apache-2.0", MTime: b.date, DisableGlobbing: true,
		Description: summary + "\n" +
			"Sends files of requests and batches of prompts with no rejects and nothing lost, goes on after a crash where it\n" +
			"stopped, says what the answers of a server mean for its limits, and has servers to try a client on.\n" +
			"paceline-lab simulates clients that share a quota, and measures and proves what is promised.",
	}
	info.Recommends = []string{"ca-certificates"}
	info.Deb.Compression = fmt.Sprintf("gzip:%d", enough) // xz would make the file a tenth smaller and take a minute
	placed, err := placed(slices.Concat(programs, b.shared))
	if err != nil {
		return err
	}
	for i, f := range placed {
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(path, f.data, 0o600); err != nil {
			return err
		}
		info.Contents = append(info.Contents,
			&packed.Content{Source: path, Destination: "/" + f.name, FileInfo: &packed.ContentFileInfo{
				Owner: "root", Group: "root", Mode: os.FileMode(f.mode()), MTime: b.date,
			}})
	}
	if err := nfpm.PrepareForPackager(nfpm.WithDefaults(info), "deb"); err != nil {
		return err
	}
	var out bytes.Buffer
	if err := deb.Default.Package(info, &out); err != nil {
		return err
	}
	return b.write(fmt.Sprintf("paceline_%s_%s.deb", b.version, p.arch), out.Bytes())
}

// placed puts the files where Debian's policy wants them.
func placed(files []file) ([]file, error) {
	const doc, share = "usr/share/doc/paceline/", "usr/share/"
	place := map[string]string{"LICENSE": doc + "copyright", "CHANGELOG.md": doc + "changelog.gz"}
	for _, c := range commands {
		of := func(shell string) string { return "completions/" + strings.Replace(shells[shell], "%", c.name, 1) }
		place[c.name] = "usr/bin/" + c.name
		place[of("bash")] = share + "bash-completion/completions/" + c.name
		place[of("zsh")] = share + "zsh/vendor-completions/_" + c.name
		place[of("fish")] = share + "fish/vendor_completions.d/" + c.name + ".fish"
		place[of("powershell")] = "" // nobody there looks for it
	}
	var out []file
	for _, f := range files {
		to, known := place[f.name]
		switch name, page := strings.CutPrefix(f.name, "man/"); {
		case known && to == "":
			continue
		case known:
			f.name = to
		case page:
			f.name = "usr/share/man/man1/" + name + ".gz"
		default:
			f.name = doc + f.name
		}
		if strings.HasSuffix(f.name, ".gz") {
			var err error
			if f.data, err = gzipped(f.data); err != nil {
				return nil, err
			}
		}
		out = append(out, f)
	}
	return sorted(out), nil
}
