package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is a file of an archive. Its name is a path with slashes, below the root of the archive.
type file struct {
	name       string
	data       []byte
	executable bool
}

func (f file) mode() int64 {
	if f.executable {
		return 0o755
	}
	return 0o644
}

// sorted returns the files in the order of their names. Otherwise the order in which a folder or a
// map is read would be part of an archive.
func sorted(files []file) []file {
	return slices.SortedFunc(slices.Values(files), func(a, b file) int { return cmp.Compare(a.name, b.name) })
}

// tarball returns a tar archive of files and of the folders that they are in. All of them belong to
// root and have the same date.
func tarball(date time.Time, files []file) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	seen := map[string]bool{".": true}
	for _, f := range sorted(files) {
		var dirs []string
		for dir := path.Dir(f.name); !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			dirs = append(dirs, dir)
		}
		for _, dir := range slices.Backward(dirs) {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: date,
				Format: tar.FormatUSTAR}); err != nil {
				return nil, err
			}
		}
		head := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode(), Size: int64(len(f.data)), ModTime: date,
			Format: tar.FormatUSTAR}
		if err := w.WriteHeader(head); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// enough is how hard gzip tries. At its best it takes 2.4 times as long, and the program is 0.13 % smaller.
const enough = 7

// gzipped compresses data. Its header has neither a name nor a date, so that the same data always gives the same bytes.
func gzipped(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, enough)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func zipped(date time.Time, files []file) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range sorted(files) {
		head := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: date}
		head.SetMode(os.FileMode(f.mode()))
		part, err := w.CreateHeader(head)
		if err != nil {
			return nil, err
		}
		if _, err := part.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// archive writes the archive for platforms without a package. It has everything in one folder.
func (b *build) archive(p platform, programs []file) error {
	name := fmt.Sprintf("paceline_%s_%s_%s", b.version, p.os, p.arch)
	var files []file
	for _, f := range slices.Concat(programs, b.shared) {
		f.name = name + "/" + f.name
		files = append(files, f)
	}
	if p.os == "windows" {
		data, err := zipped(b.date, files)
		if err != nil {
			return err
		}
		return b.write(name+".zip", data)
	}
	return b.writeTarGz(name+".tar.gz", files)
}

func (b *build) writeTarGz(name string, files []file) error {
	data, err := tarball(b.date, files)
	if err != nil {
		return err
	}
	if data, err = gzipped(data); err != nil {
		return err
	}
	return b.write(name, data)
}

func (b *build) write(name string, data []byte) error {
	return os.WriteFile(filepath.Join(b.out, name), data, 0o644)
}

// sums writes SHA256SUMS, as sha256sum --check reads it.
func (b *build) sums() error {
	entries, err := os.ReadDir(b.out)
	if err != nil {
		return err
	}
	var out strings.Builder
	for _, e := range entries { // by name
		data, err := os.ReadFile(filepath.Join(b.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	return b.write("SHA256SUMS", []byte(out.String()))
}
