package main

import (
	"context"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/forward"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/pages"
)

// asProgram is the environment variable that makes the test binary the command itself, for tests that kill it.
const asProgram = "PACELINE_TEST_AS_PROGRAM"

// shellEnv is the environment of a shell in which paceline is this test binary.
func shellEnv(t *testing.T) []string { return pages.Env(t, "paceline", asProgram, nil) }

// patient is how long a test waits for what must come at last: longer than anything takes on a machine that is slow and shared.
const patient = 5 * time.Minute

const testKey = "h1dden-Va7ueQ9"

// environment has what tests name in flags such as --key-env: a test that sets a variable for itself cannot run beside others.
var environment = map[string]string{
	"PL_TEST_KEY": testKey, "PL_TEST_SAME": testKey, "PL_TEST_EMPTY": "", "A_KEY": testKey, "SECRET": "1",
	"PL_SECRET": aSecret, "PL_PLACEHOLDER": "ollama",
	"PL_MINT_ID": "me", "PL_MINT_SECRET": mintSecret, "PL_MINT_EMPTY": "",
	"PAGE_KEY": "a-secret-that-nobody-sees-0123456789", "PL_FLAGS": "a",
	"KEY_A": "sk-large-5f0c81b97d2e", "KEY_B": "sk-small-91d27ab6c03f",
}

func TestMain(m *testing.M) {
	if os.Getenv(asMint) == "1" {
		printToken(os.Args[2])
		return
	}
	if os.Getenv(asPool) == "1" {
		if err := sendByPool(os.Args[1], os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	notesSends = os.Getenv("PACELINE_TEST_RECENT") == "1"
	if os.Getenv(asProgram) == "1" {
		main()
		return
	}
	runs, err := os.MkdirTemp("", "paceline-runs-*")
	if err != nil {
		panic(err)
	}
	environment["PACELINE_RUNS"] = runs
	for _, name := range []string{"XDG_RUNTIME_DIR", "XDG_STATE_HOME"} { // of a daemon of these tests
		environment[name] = filepath.Join(runs, name)
		if err := os.Mkdir(environment[name], 0o700); err != nil {
			panic(err)
		}
	}
	if !need.Whole() {
		oneRoot(filepath.Join(runs, "root.pem"))
	}
	for name, value := range environment {
		os.Setenv(name, value)
	}
	flag.Parse()
	// Most of these tests wait: for servers, for clocks, for other processes.
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set("16")
	}
	code := m.Run()
	execute(context.Background(), []string{"daemon", "stop", "--now"}, nil, io.Discard, io.Discard)
	os.RemoveAll(runs)
	os.Exit(code)
}

// oneRoot has the programs of these tests trust one certificate of the machine, and not all. Python reads all of them for each
// connection, which takes 40 ms.
func oneRoot(file string) {
	for _, v := range forward.Variables {
		if v.IsBundle() {
			os.Unsetenv(v.Name)
		}
	}
	for _, name := range forward.Roots {
		text, _ := os.ReadFile(name)
		if first, _ := pem.Decode(text); first != nil && os.WriteFile(file, pem.EncodeToMemory(first), 0o600) == nil {
			os.Setenv("SSL_CERT_FILE", file)
			return
		}
	}
}
