package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/ratetest/latency"
)

const (
	tryRequests = 100
	tryLimit    = 20 // in any second
	tryBan      = 10 // refusals
)

const tryLong = `Start a strict server in this process, and send it 100 requests by paceline run.

The server takes 20 requests in any second. It refuses what is more with status 429, and bans a key at the tenth refusal.
Each answer takes up to 100 ms. The command needs no network, no account and no file, and leaves none behind. At the end it
prints the commands that do the same in two terminals.`

func newTry() *cobra.Command {
	return &cobra.Command{
		Use: "try", Short: "See it work: 100 requests to a strict server in this process",
		Long: tryLong, Args: cli.NoArguments, RunE: try,
	}
}

// try is the verb run against a server of its own. Standard output is complete by itself; progress
// is on standard error, as always.
func try(cmd *cobra.Command, _ []string) error {
	server, err := tryServer()
	if err != nil {
		return err
	}
	defer server.Close()
	dir, err := os.MkdirTemp("", "paceline-try-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	at := server.URL() + ratetest.Path
	list, results := filepath.Join(dir, "urls.txt"), filepath.Join(dir, "results.jsonl")
	if err := os.WriteFile(list, []byte(tryURLs(at)), 0o600); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "A strict server is at %s: %d requests in any second, and a ban at refusal %d.\n", server.URL(),
		tryLimit, tryBan)
	fmt.Fprintf(out, "urls.txt has %d URLs, such as %s?req_id=1\n\n$ paceline run urls.txt %s\n\n",
		tryRequests, at, strings.Join(quoted(tryFlags("results.jsonl")), " "))
	args := append([]string{"run", list}, tryFlags(results)...)
	if code := newProgram().Execute(cmd.Context(), args, strings.NewReader(""), out,
		cmd.ErrOrStderr()); code != cli.ExitOK {
		return cli.Exit(code, nil)
	}
	first, err := firstLine(results)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nThe first line of results.jsonl:\n%s\n\n", first)
	if err := tryVerdict(out, server.Report()); err != nil {
		return err
	}
	_, err = io.WriteString(out, tryNext)
	return err
}

// tryServer starts the server, at any free port.
func tryServer() (*ratetest.Exchange, error) {
	law := latency.Uniform(0, 50*time.Millisecond)
	x, err := ratetest.NewExchange(ratetest.Config{
		Keys: []string{"key1"}, Before: law, After: law, Seed: 1,
		Limit: tryLimit, BanAfter: tryBan,
	})
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("no port of this machine is free to listen on: %w", err)
	}
	x.StartListener(l)
	return x, nil
}

func tryURLs(at string) string {
	var b strings.Builder
	for i := range tryRequests {
		fmt.Fprintf(&b, "%s?req_id=%d\n", at, i+1)
	}
	return b.String()
}

func tryFlags(results string) []string {
	return []string{"--limit", "20/s", "--query", "api_key=key1", "--query", "nonce={nonce}", "--out", results}
}

func quoted(words []string) []string {
	for i := range words {
		words[i] = cli.Quoted(words[i])
	}
	return words
}

func firstLine(file string) (string, error) {
	text, err := os.ReadFile(file)
	line, _, _ := strings.Cut(string(text), "\n")
	return line, err
}

// tryVerdict writes the server's counts, and the finding of an independent judge.
func tryVerdict(out io.Writer, r ratetest.Report) error {
	k := r.Judge.Keys[0]
	fmt.Fprintf(out, "The server took %d requests, at most %d in any second, and refused %d.\n",
		k.Counts.Accepted, k.Worst.Requests, k.Counts.Limited)
	if r.Judge.Faults > 0 {
		return fmt.Errorf("the server broke its own rule %d times, which is a bug: %s", r.Judge.Faults,
			strings.Join(r.Judge.FirstFaults, "; "))
	}
	if k.Counts.Limited > 0 || k.Counts.Banned > 0 {
		return errors.New("requests were refused, which is a bug")
	}
	return nil
}

const tryNext = `
The same in two terminals, with as many requests as you like:

  paceline serve exchange
  seq -f 'http://127.0.0.1:9999/api/request?req_id=%g' 1000 > urls.txt
  paceline run urls.txt --limit 20/s --query api_key=key1 --query 'nonce={nonce}' --out results.jsonl

Your own list: paceline run FILE --limit 20/s --dry-run prints the plan and sends nothing.
`
