package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// prng is the function of Windows 10 for random numbers that wine 8 lacks, and Go's programs call.
const prng = `#include <windows.h>
#include <ntsecapi.h>
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE p, SIZE_T n) { return RtlGenRandom(p, (ULONG)n); }
`

// Released programs for other machines send a hundred requests, by an emulator: `paceline try` serves them, and says what
// their server counted. Then a run goes on with the results of the one before.
//
// It needs the packages qemu-user, wine64 and gcc-mingw-w64-x86-64-win32.
func TestTriedElsewhere(t *testing.T) {
	need.LongOnly(t, "it needs emulators")
	t.Run("linux_arm64", func(t *testing.T) {
		triedBy(t, platform{"linux", "arm64"}, nil, need.Program(t, "qemu-aarch64"))
	})
	t.Run("windows_amd64", func(t *testing.T) {
		wine := "/usr/lib/wine/wine64" // Debian's package of this name puts it into no PATH
		if _, err := os.Stat(wine); err != nil {
			wine = need.Program(t, "wine64")
		}
		gcc := need.Program(t, "x86_64-w64-mingw32-gcc")
		dir := t.TempDir()
		env := []string{"WINEPREFIX=" + filepath.Join(dir, "prefix"), "WINEDEBUG=-all", "HOME=" + dir, "PATH=" + os.Getenv("PATH")}
		emulated(t, dir, env, wine, "wineboot", "-i")
		code, dll := filepath.Join(dir, "prng.c"), filepath.Join(dir, "prefix/drive_c/windows/system32/bcryptprimitives.dll")
		if err := os.WriteFile(code, []byte(prng), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, dir, gcc, "-shared", "-o", dll, code, "-ladvapi32")
		triedBy(t, platform{"windows", "amd64"}, env, wine)
	})
}

// triedBy runs the released program by an emulator.
func triedBy(t *testing.T, p platform, env []string, emulator string) {
	t.Helper()
	one, _ := outs(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "paceline.exe")
	if err := os.WriteFile(program, programOf(t, one, p, "paceline"), 0o700); err != nil {
		t.Fatal(err)
	}
	said := emulated(t, dir, env, emulator, program, "try")
	for _, want := range []string{"100 offered, 100 done, 0 rejected", "The server took 100 requests", "and refused 0."} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	served := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer served.Close()
	urls := strings.Repeat(served.URL+"\n", 3)
	if err := os.WriteFile(filepath.Join(dir, "urls.txt"), []byte(urls), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3 offered, 3 done", "3 done before"} {
		said := emulated(t, dir, env, emulator, program, "run", "urls.txt", "--limit", "20/s", "--out", "results.jsonl")
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
}

// emulated returns what a program says, that ends well.
func emulated(t *testing.T, dir string, env []string, argv ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Dir, c.Env = dir, env
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return string(out)
}
