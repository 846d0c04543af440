package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// source is what a release is made of: one commit.
type source struct {
	root    string    // the folder of the clone
	commit  string    // in full
	tag     string    // v1.2.3, or what go build would say of a commit without a tag
	version string    // the tag without its v
	date    time.Time // of all files: SOURCE_DATE_EPOCH, or when the commit was made
}

// versionTag is a tag of Semantic Versioning, without build metadata, which Go's modules do not have.
var versionTag = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

// readSource describes the clone that it is run in. It returns an error if the clone has changes
// that are not committed, or if CHANGELOG.md has no heading for the version.
func readSource(tag string) (source, error) {
	root, err := git(".", "rev-parse", "--show-toplevel")
	if err != nil {
		return source{}, err
	}
	s := source{root: root}
	changed, err := git(root, "status", "--porcelain")
	if err != nil {
		return source{}, err
	}
	if changed != "" {
		return source{}, fmt.Errorf("the clone has changes, and a release is made of a commit; commit, ignore or remove:\n%s", changed)
	}
	said, err := git(root, "show", "--no-patch", "--format=%H %ct", "HEAD")
	if err != nil {
		return source{}, err
	}
	commit, made, _ := strings.Cut(said, " ")
	s.commit = commit
	epoch := cmp.Or(os.Getenv("SOURCE_DATE_EPOCH"), made)
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || seconds < 0 {
		return source{}, fmt.Errorf("SOURCE_DATE_EPOCH=%s: want seconds since 1970", epoch)
	}
	s.date = time.Unix(seconds, 0).UTC()
	if s.tag, err = s.chooseTag(tag); err != nil {
		return source{}, err
	}
	s.version = strings.TrimPrefix(s.tag, "v")
	return s, nil
}

// chooseTag finds the tag to be released. For a commit without a tag it makes up the version of a snapshot.
func (s *source) chooseTag(wanted string) (string, error) {
	if wanted != "" && !versionTag.MatchString(wanted) {
		return "", fmt.Errorf("--tag %s: want a version such as v1.2.3 or v1.2.3-rc.1", wanted)
	}
	list, err := git(s.root, "tag", "--points-at", "HEAD")
	if err != nil {
		return "", err
	}
	tags := slices.DeleteFunc(strings.Fields(list), func(t string) bool { return !versionTag.MatchString(t) })
	switch {
	case wanted != "" && !slices.Contains(tags, wanted):
		return "", fmt.Errorf("--tag %s: the tag is not at HEAD, %s; check it out, or fetch the tags", wanted, s.commit)
	case wanted == "" && len(tags) == 0:
		made, err := git(s.root, "show", "--no-patch", "--date=format-local:%Y%m%d%H%M%S", "--format=%cd", "HEAD")
		return "v0.0.0-" + made + "-" + s.commit[:12], err
	case wanted == "" && len(tags) > 1:
		return "", fmt.Errorf("several versions are at HEAD: %s; name one with --tag", strings.Join(tags, ", "))
	}
	tag := cmp.Or(wanted, tags[0])
	if err := s.checkMajor(tag); err != nil {
		return "", err
	}
	changes, err := os.ReadFile(filepath.Join(s.root, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	heading := "## [" + strings.TrimPrefix(tag, "v") + "]"
	for line := range strings.Lines(string(changes)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), heading); ok &&
			(rest == "" || strings.HasPrefix(rest, " - ")) {
			return tag, nil
		}
	}
	return "", fmt.Errorf("CHANGELOG.md has no heading %q for the tag %s; what is under \"## [Unreleased]\" goes below it", heading+" - YYYY-MM-DD", tag)
}

// checkMajor returns an error if the tag is of another major version than the module's path. From
// v2 on Go takes a tag for a version of the module only if the path ends in it.
func (s *source) checkMajor(tag string) error {
	major, _, _ := strings.Cut(tag, ".")
	if major == "v0" || major == "v1" {
		return nil
	}
	path, err := output(s.root, append(os.Environ(), "GOWORK=off"), "go", "list", "-m")
	if err == nil && !strings.HasSuffix(path, "/"+major) {
		err = fmt.Errorf("the tag %s needs a module whose path ends with /%s, and go.mod has %s", tag, major, path)
	}
	return err
}

func git(dir string, args ...string) (string, error) {
	return output(dir, append(os.Environ(), "TZ=UTC"), "git", args...)
}

// output runs a program and returns its standard output. If it fails, the error has what it wrote to standard error.
func output(dir string, env []string, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir, c.Env = dir, env
	out, err := c.Output()
	if err != nil {
		said := err.Error()
		if e, ok := errors.AsType[*exec.ExitError](err); ok && len(e.Stderr) > 0 {
			said = strings.TrimSpace(string(e.Stderr))
		}
		return "", fmt.Errorf("%s %s: %s", name, strings.Join(args, " "), said)
	}
	return strings.TrimSpace(string(out)), nil
}
