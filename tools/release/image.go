package main

import (
	"bytes"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	registry "github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// image writes an OCI layout as one tar file: an index with an image for each architecture of
// Linux. An image is one layer from scratch: the program paceline, the certificates that Mozilla
// trusts, and the licences.
func (b *build) image(programs map[platform]file) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	built := false
	for _, p := range platforms {
		program, ok := programs[p]
		if !ok || p.os != "linux" {
			continue
		}
		image, err := b.imageOf(p, program)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}},
		})
		built = true
	}
	if !built {
		return nil
	}
	dir := filepath.Join(b.tmp, "oci")
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	// The first annotation is the name as OCI has it; the second is the one that docker load reads.
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": b.version, "io.containerd.image.name": "docker.io/library/paceline:" + b.version,
	})); err != nil {
		return err
	}
	var files []file
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		files = append(files, file{name: filepath.ToSlash(name), data: data})
		return err
	})
	if err != nil {
		return err
	}
	data, err := tarball(b.date, files)
	if err != nil {
		return err
	}
	return b.write("paceline_"+b.version+"_oci.tar", data)
}

func (b *build) imageOf(p platform, program file) (v1.Image, error) {
	files := []file{
		{name: "usr/bin/paceline", data: program.data, executable: true},
		{name: "etc/ssl/certs/ca-certificates.crt", data: certificates()},
	}
	for _, f := range b.shared {
		if f.name == "LICENSE" || f.name == "THIRD_PARTY.txt" {
			files = append(files, file{name: "usr/share/doc/paceline/" + f.name, data: f.data})
		}
	}
	data, err := tarball(b.date, files)
	if err != nil {
		return nil, err
	}
	layer, err := registry.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data)),
			nil
	},
		registry.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.Append(image, mutate.Addendum{
		Layer: layer, MediaType: types.OCILayer,
		History: v1.History{CreatedBy: "tools/release/build", Created: v1.Time{Time: b.date}},
	}); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.os, p.arch, v1.Time{Time: b.date}
	config.Config = v1.Config{
		Entrypoint: []string{"/usr/bin/paceline"},
		Env:        []string{"PATH=/usr/bin"},
		// Users mount the folder with their files here. The container engine makes the mount point.
		WorkingDir: "/work",
		Labels: map[string]string{
			"org.opencontainers.image.title":       "paceline",
			"org.opencontainers.image.description": summary,
			"org.opencontainers.image.version":     b.version,
			"org.opencontainers.image.revision":    b.commit,
			"org.opencontainers.image.source":      "https://github.com/paceline-go/paceline",
			"org.opencontainers.image.licenses":    "Apache-2.0",
		},
	}
	return mutate.ConfigFile(image, config)
}

// certificates returns the root certificates that Mozilla trusts without a condition. A file of
// certificates cannot state conditions, such as a last day of trust.
func certificates() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // writing to a buffer cannot fail
		}
	}
	return out.Bytes()
}
