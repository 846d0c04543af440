package main

import (
	"os"
	"testing"
)

// asProgram is the environment variable that makes the test binary the command itself, for tests that kill it.
const asProgram = "PACELINE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "1" {
		main()
		return
	}
	runs, err := os.MkdirTemp("", "paceline-runs-*")
	if err != nil {
		panic(err)
	}
	os.Setenv("PACELINE_RUNS", runs)
	code := m.Run()
	os.RemoveAll(runs)
	os.Exit(code)
}
