package main

import (
	_ "embed" // for launcher
	"encoding/json"
	"fmt"
)

// launcher is what npm runs as paceline: it starts the program that is in the package of the platform.
//
//go:embed npm/paceline.js
var launcher []byte

//go:embed npm/README.md
var npmReadme []byte

// These map Go's names of systems and architectures to Node's.
var (
	nodeOS   = map[string]string{"linux": "linux", "darwin": "darwin", "windows": "win32"}
	nodeArch = map[string]string{"amd64": "x64", "arm64": "arm64"}
)

// manifest is a package.json.
type manifest struct {
	Name         string            `json:"name"`
	Version      string            `json:"version"`
	Description  string            `json:"description"`
	License      string            `json:"license"`
	Homepage     string            `json:"homepage"`
	Repository   repository        `json:"repository"`
	Bin          map[string]string `json:"bin,omitempty"`
	OS           []string          `json:"os,omitempty"`
	CPU          []string          `json:"cpu,omitempty"`
	Engines      map[string]string `json:"engines,omitempty"`
	Optional     map[string]string `json:"optionalDependencies,omitempty"`
	PreferUnplug bool              `json:"preferUnplugged,omitempty"` // or Yarn would leave the program in a zip file
}

type repository struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

// npm writes a package per platform, which has the program paceline, and one that depends on them
// all: npm installs the one whose os and cpu are the machine's. No script runs at installation.
func (b *build) npm(programs map[platform]file) error {
	main := b.manifest("paceline", summary)
	main.Bin = map[string]string{"paceline": "bin/paceline.js"}
	main.Engines = map[string]string{"node": ">=18"}
	main.Optional = map[string]string{}
	for _, p := range platforms {
		program, ok := programs[p]
		if !ok {
			continue
		}
		system := nodeOS[p.os] + "-" + nodeArch[p.arch]
		of := b.manifest("@paceline/"+system, "the program paceline for "+p.String())
		of.OS, of.CPU, of.PreferUnplug = []string{nodeOS[p.os]}, []string{nodeArch[p.arch]}, true
		program.name = "bin/" + program.name
		if err := b.npmPackage("paceline-"+system, of, program); err != nil {
			return err
		}
		main.Optional[of.Name] = b.version
	}
	return b.npmPackage("paceline", main, file{name: "bin/paceline.js", data: launcher, executable: true})
}

func (b *build) manifest(name, description string) manifest {
	return manifest{
		Name: name, Version: b.version, Description: description, License: "Apache-2.0",
		Homepage:   "https://github.com/paceline-go/paceline",
		Repository: repository{"git", "git+https://github.com/paceline-go/paceline.git"},
	}
}

func (b *build) npmPackage(name string, m manifest, program file) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	files := []file{program, {name: "package.json", data: append(text, '\n')}, {name: "README.md", data: npmReadme}}
	for _, f := range b.shared {
		if f.name == "LICENSE" || f.name == "THIRD_PARTY.txt" {
			files = append(files, f)
		}
	}
	for i := range files {
		files[i].name = "package/" + files[i].name
	}
	return b.writeTarGz(fmt.Sprintf("npm_%s-%s.tgz", name, b.version), files)
}
