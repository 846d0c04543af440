// Command run measures what `paceline run` costs beside hey (github.com/rakyll/hey), which keeps nothing: turns of each, one after the
// other, at a server of net/http that answers with a short JSON, in a process of its own on this machine.
//
//	cd bench && go run ./run                     5 pairs at 64 connections, then at 8 and at 1: some minutes
//	cd bench && go run ./run -against ../old     beside another `paceline`, such as one built before a change
//
// Both programs are built here (hey from the module proxy). run has no limit, and writes its results and its journal. Its CPU time is that of
// the whole process, which reads the input twice and the results once more. Each program states its own rate: hey that of its whole run, and
// run that from the first send to the last answer.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	pairs       = flag.Int("pairs", 5, "turns of each")
	requests    = flag.Int("requests", 200_000, "of a turn")
	connections = flag.String("connections", "64,8,1", "at once")
	against     = flag.String("against", "", "another paceline to measure, as a third")
	serves      = flag.Bool("serve", false, "be the server")
)

const heyVersion = "github.com/rakyll/hey@v0.1.5"

func main() {
	flag.Parse()
	run := measure
	if *serves {
		run = serve
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve answers until its standard input ends.
func serve() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"ok":true,"n":12345}`))
	}))
}

// turn is the result of one turn of a program: requests per second, and CPU time per request.
type turn struct{ rate, micros float64 }

func measure() error {
	dir, err := os.MkdirTemp("", "paceline-run-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	install := exec.Command("go", "install", heyVersion)
	install.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=", "GOWORK=off")
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "paceline"), "./cmd/paceline")
	build.Dir = ".."
	for _, c := range []*exec.Cmd{install, build} {
		if text, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", c, err, text)
		}
	}
	address, stop, err := startServer()
	if err != nil {
		return err
	}
	defer stop()
	url := "http://" + address + "/api/request?req_id="
	var input bytes.Buffer
	for i := range *requests {
		fmt.Fprintf(&input, `{"id":"q%d","url":"%s%d"}`+"\n", i, url, i)
	}
	in := filepath.Join(dir, "in.jsonl")
	if err := os.WriteFile(in, input.Bytes(), 0o600); err != nil {
		return err
	}
	clients := []string{filepath.Join(dir, "hey"), filepath.Join(dir, "paceline")}
	if *against != "" {
		clients = append(clients, *against)
	}
	for text := range strings.SplitSeq(*connections, ",") {
		if err := measureAt(text, clients, url, in, dir); err != nil {
			return err
		}
	}
	return nil
}

func startServer() (address string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	c := exec.Command(self, "-serve")
	in, err := c.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return "", nil, err
	}
	if _, err := fmt.Fscanln(out, &address); err != nil {
		return "", nil, err
	}
	return address, func() { in.Close(); _ = c.Wait() }, nil
}

func measureAt(connections string, clients []string, url, in, dir string) error {
	turns := make([][]turn, len(clients))
	for range *pairs {
		for i, client := range clients {
			var t turn
			var err error
			if i == 0 {
				t, err = hey(client, connections, url)
			} else {
				t, err = paceline(client, connections, in, filepath.Join(dir, "out.jsonl"))
			}
			if err != nil {
				return err
			}
			turns[i] = append(turns[i], t)
		}
	}
	ratios := make([][]float64, len(clients))
	fmt.Printf("%s connections, medians of %d turns of %d requests:\n", connections, *pairs, *requests)
	for i, client := range clients {
		var rates, micros []float64
		for n, t := range turns[i] {
			rates, micros = append(rates, t.rate), append(micros, t.micros)
			ratios[i] = append(ratios[i], t.rate/turns[0][n].rate)
		}
		fmt.Printf("  %-10s %7.0f/s  %5.1f µs of CPU per request  %.2f of hey (%.2f to %.2f)\n",
			filepath.Base(client), median(rates), median(micros), median(ratios[i]), slices.Min(ratios[i]), slices.Max(ratios[i]))
	}
	return nil
}

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

func cpu(p *os.ProcessState) float64 {
	return float64((p.UserTime() + p.SystemTime()).Nanoseconds()) / 1e3 / float64(*requests)
}

var saysRate = regexp.MustCompile(`Requests/sec:\s*([\d.]+)`)

func hey(client, connections, url string) (t turn, err error) {
	c := exec.Command(client, "-n", strconv.Itoa(*requests), "-c", connections, url+"1")
	text, err := c.CombinedOutput()
	m := saysRate.FindSubmatch(text)
	if err != nil || m == nil {
		return t, fmt.Errorf("%v: %w\n%s", c, err, text)
	}
	t.rate, err = strconv.ParseFloat(string(m[1]), 64)
	t.micros = cpu(c.ProcessState)
	return t, err
}

func paceline(client, connections, in, out string) (t turn, err error) {
	for _, f := range []string{out, out + ".journal"} {
		if err := os.Remove(f); err != nil && !os.IsNotExist(err) {
			return t, err
		}
	}
	c := exec.Command(client, "run", "--limit", "none", "--concurrency", connections, "--out", out, "--progress", "off", "-o", "json", in)
	text, err := c.CombinedOutput()
	var said struct {
		Done int
		Rate float64
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if err == nil {
		err = json.Unmarshal(lines[len(lines)-1], &said)
	}
	if err != nil || said.Done != *requests {
		return t, fmt.Errorf("%v: %w\n%s", c, err, text)
	}
	return turn{said.Rate, cpu(c.ProcessState)}, nil
}
