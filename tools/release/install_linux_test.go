package main

import (
	"archive/tar"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// insideRoot is the environment variable that makes this test's program run its arguments in a root, with a network of its
// own that has the loopback alone.
const insideRoot = "RELEASE_TEST_INSIDE"

func inside() {
	root := os.Getenv(insideRoot)
	if root == "" {
		return
	}
	err := loopback()
	if err == nil {
		err = errors.Join(syscall.Chroot(root), os.Chdir("/tmp"))
	}
	if err == nil {
		err = syscall.Exec(os.Args[1], os.Args[1:], []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp"})
	}
	fmt.Fprintln(os.Stderr, "inside", root, err)
	os.Exit(125)
}

// loopback switches on the loopback of a new network.
func loopback() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo)
}

// within runs a program in a root and returns what it printed. The test is skipped, or fails, where that is not possible.
func within(t *testing.T, root string, args ...string) (string, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "/proc/self/exe", args...)
	c.Env = []string{insideRoot + "=" + root}
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	out, err := c.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		impossible(t, "a network of its own is not allowed here: "+err.Error())
	}
	return string(out), err
}

func impossible(t *testing.T, why string) {
	t.Helper()
	if os.Getenv(need.Require) == "1" {
		t.Fatalf("%s, and %s=1 says that all tests can run", why, need.Require)
	}
	t.Skip(why)
}

// firstCommands is the first block of README.md, marked as sh, that has a line which begins with "paceline ".
func firstCommands(t *testing.T) string {
	t.Helper()
	for _, m := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(read(t, "../../README.md")), -1) {
		if regexp.MustCompile(`(?m)^paceline `).MatchString(m[1]) {
			return m[1]
		}
	}
	t.Fatal("README.md has no block of sh with a line that begins with \"paceline \"")
	return ""
}

// On a Debian that has nothing but what every Debian has, and no network, the package is installed and README.md's first
// commands are run as they stand there.
func TestDeb(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		impossible(t, "only root can make a root for Debian")
	}
	root := debian(t)
	one, _ := outs(t)
	name := "paceline_0.9.8_" + here.arch + ".deb"
	if err := os.WriteFile(filepath.Join(root, "tmp", name), read(t, one, name), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := within(t, root, "/usr/bin/dpkg", "--install", "/tmp/"+name); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range commands {
		if out, err := within(t, root, "/usr/bin/"+c.name, "version"); err != nil || !strings.HasPrefix(out, c.name+" "+tagged+" ") {
			t.Errorf("%v, %s", err, out)
		}
	}
	if out, err := within(t, root, "/usr/bin/paceline-lab", "bench", "exchange", "--virtual", "--seconds", "10", "--seeds", "1", "--row", "lease"); err != nil {
		t.Errorf("%v, %s", err, out)
	}
	for _, file := range []string{"usr/share/man/man1/paceline-lab-sim.1.gz", "usr/share/bash-completion/completions/paceline-lab",
		"usr/share/man/man1/paceline-run.1.gz", "usr/share/bash-completion/completions/paceline",
		"usr/share/zsh/vendor-completions/_paceline", "usr/share/fish/vendor_completions.d/paceline.fish",
		"usr/share/doc/paceline/copyright", "usr/share/doc/paceline/THIRD_PARTY.txt", "usr/share/doc/paceline/changelog.gz"} {
		if len(read(t, root, file)) == 0 {
			t.Errorf("%s is empty", file)
		}
	}
	commands := firstCommands(t)
	if !strings.Contains(commands, "\npaceline run ") || !strings.Contains(commands, "paceline serve ") {
		t.Errorf("README.md's first commands do not send to a paceline serve:\n%s", commands)
	}
	began := time.Now()
	out, err := within(t, root, "/bin/sh", "-euc", "mkdir try; cd try\n"+commands)
	if err != nil {
		t.Errorf("README.md's first commands end with %v\n%s\n%s", err, commands, out)
	}
	t.Logf("after %.1f s:\n%s", time.Since(began).Seconds(), out)
	if out, err := within(t, root, "/usr/bin/dpkg", "--purge", "paceline"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(root, "usr/bin/paceline")); !os.IsNotExist(err) {
		t.Errorf("after the purge: %v", err)
	}
}

// debian is a root with the packages that every Debian has, unpacked: to configure them all would take longer than all else
// here, and what is installed depends on none.
func debian(t *testing.T) string {
	t.Helper()
	program := need.Program(t, "debootstrap")
	suite, mirror := "stable", ""
	// Where this machine has its packages from. Without apt, debootstrap knows a place.
	if out, err := exec.Command("apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)", "Created-By: Packages").Output(); err == nil {
		if fields := strings.Fields(string(out)); len(fields) >= 2 {
			suite, mirror = fields[0], fields[1]
		}
	}
	root := filepath.Join(t.TempDir(), "root")
	args := []string{"--variant=minbase", "--foreign", suite, root}
	if mirror != "" {
		args = append(args, mirror)
	}
	c := exec.CommandContext(t.Context(), program, args...)
	c.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("debootstrap %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return root
}

// oci unpacks the layout of a release and returns its images.
func oci(t *testing.T, out string) map[platform]v1.Image {
	t.Helper()
	dir := t.TempDir()
	run(t, dir, "tar", "xf", filepath.Join(out, "paceline_0.9.8_oci.tar"))
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(top); err != nil {
		t.Fatal(err)
	}
	entries, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(entries.Manifests) != 1 || entries.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "0.9.8" {
		t.Fatalf("the layout has %+v", entries.Manifests)
	}
	index, err := top.ImageIndex(entries.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	images := map[platform]v1.Image{}
	for _, m := range manifest.Manifests {
		if images[platform{m.Platform.OS, m.Platform.Architecture}], err = index.Image(m.Digest); err != nil {
			t.Fatal(err)
		}
	}
	return images
}

// layers has the digests of a release's images.
func layers(t *testing.T, out string) map[platform]string {
	t.Helper()
	digests := map[platform]string{}
	for p, image := range oci(t, out) {
		d, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests[p] = d.String()
	}
	return digests
}

// The image has all that the program needs, which is itself and certificates.
func TestImage(t *testing.T) {
	t.Parallel()
	one, _ := outs(t)
	images := oci(t, one)
	if images[here] == nil {
		t.Fatalf("there are images for %v", images)
	}
	config, err := images[here].ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(config.Config.Entrypoint, []string{"/usr/bin/paceline"}) || config.Config.Labels["org.opencontainers.image.version"] != "0.9.8" {
		t.Errorf("%+v", config.Config)
	}
	root := t.TempDir()
	extract(t, images[here], root)
	pool := x509.NewCertPool()
	trusted := read(t, root, "etc/ssl/certs/ca-certificates.crt")
	if n := strings.Count(string(trusted), "BEGIN CERTIFICATE"); !pool.AppendCertsFromPEM(trusted) || n < 100 {
		t.Errorf("it has %d certificates", n)
	}
	if os.Getuid() != 0 {
		impossible(t, "only root can run what is in a root")
	}
	if err := os.Mkdir(filepath.Join(root, "tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := within(t, root, "/usr/bin/paceline", "version"); err != nil || !strings.HasPrefix(out, "paceline "+tagged+" ") {
		t.Errorf("%v, %s", err, out)
	}
	// Nothing but the program is there: no shell, no zone of time, no /proc.
	if err := os.WriteFile(filepath.Join(root, "tmp", "urls.txt"), []byte("https://api.example.com/1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := within(t, root, "/usr/bin/paceline", "run", "--limit", "20/s", "--dry-run", "/tmp/urls.txt"); err != nil || !strings.Contains(out, "requests") {
		t.Errorf("%v, %s", err, out)
	}
}

func extract(t *testing.T, image v1.Image, root string) {
	t.Helper()
	content := mutate.Extract(image)
	defer content.Close()
	for r := tar.NewReader(content); ; {
		head, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(root, head.Name)
		if head.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(to, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, head.FileInfo().Mode()); err != nil {
			t.Fatal(err)
		}
	}
}
