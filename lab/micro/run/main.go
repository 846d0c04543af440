// Command run measures `paceline run` beside hey (github.com/rakyll/hey), which keeps nothing. Each
// has turns, one after the other, at a server of net/http that answers with a short JSON. The
// server is a process of its own on this machine, and speaks HTTP/1.1 with TLS and without.
//
//	cd lab/micro && go run ./run                     5 pairs at 64 connections, then at 8 and at 1, over TLS and without: some minutes
//	cd lab/micro && go run ./run -against ../old     beside another `paceline`, such as one built before a change
//
// Both programs are built here (hey from the module proxy). run has no limit, and writes its
// results and its journal. Its CPU time is that of the whole process, which reads the input twice
// and the results once more. Each program states its own rate: hey that of its whole run, and run
// that from the first send to the last answer.
package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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
	schemes     = flag.String("schemes", "https,http", "with TLS, and without")
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

// serve answers over both schemes until its standard input ends. It writes its two URLs to standard
// output, and its certificate to the file that is its argument.
func serve() error {
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"ok":true,"n":12345}`))
	})
	plain, secure := httptest.NewServer(answer), httptest.NewTLSServer(answer)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	if err := os.WriteFile(flag.Arg(0), certificate, 0o600); err != nil {
		return err
	}
	fmt.Println(plain.URL, secure.URL)
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
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
	build.Dir = filepath.Join("..", "..")
	for _, c := range []*exec.Cmd{install, build} {
		if text, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", c, err, text)
		}
	}
	clients := []string{filepath.Join(dir, "hey"), filepath.Join(dir, "paceline")}
	if *against != "" {
		clients = append(clients, *against)
	}
	urls, stop, err := startServer(filepath.Join(dir, "certificate"))
	if err != nil {
		return err
	}
	defer stop()
	for scheme := range strings.SplitSeq(*schemes, ",") {
		url := urls[scheme] + "/api/request?req_id="
		in := filepath.Join(dir, scheme+".jsonl")
		if err := writeInput(in, url); err != nil {
			return err
		}
		for text := range strings.SplitSeq(*connections, ",") {
			if err := measureAt(scheme, text, clients, url, in, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

func writeInput(name, url string) error {
	var input bytes.Buffer
	for i := range *requests {
		fmt.Fprintf(&input, `{"id":"q%d","url":"%s%d"}`+"\n", i, url, i)
	}
	return os.WriteFile(name, input.Bytes(), 0o600)
}

// startServer returns the server's URLs by scheme. What is started here from now on trusts its certificate.
func startServer(certificate string) (urls map[string]string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	c := exec.Command(self, "-serve", certificate)
	in, err := c.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return nil, nil, err
	}
	var plain, secure string
	if _, err := fmt.Fscanln(out, &plain, &secure); err != nil {
		return nil, nil, err
	}
	if err := os.Setenv("SSL_CERT_FILE", certificate); err != nil {
		return nil, nil, err
	}
	return map[string]string{"http": plain, "https": secure}, func() { in.Close(); _ = c.Wait() }, nil
}

func measureAt(scheme, connections string, clients []string, url, in, dir string) error {
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
	ratios, cpus := make([][]float64, len(clients)), make([][]float64, len(clients))
	fmt.Printf("%s, %s connections, medians of %d turns of %d requests:\n", scheme, connections, *pairs, *requests)
	for i, client := range clients {
		var rates, micros []float64
		for n, t := range turns[i] {
			rates, micros = append(rates, t.rate), append(micros, t.micros)
			ratios[i] = append(ratios[i], t.rate/turns[0][n].rate)
			cpus[i] = append(cpus[i], t.micros/turns[0][n].micros)
		}
		fmt.Printf("  %-10s %7.0f/s  %5.1f µs of CPU per request  of hey's: %s of the rate, %s of the CPU\n",
			filepath.Base(client), median(rates), median(micros), spread(ratios[i]), spread(cpus[i]))
	}
	return nil
}

// spread is the median, and the least and the most.
func spread(all []float64) string {
	return fmt.Sprintf("%.2f (%.2f to %.2f)", median(all), slices.Min(all), slices.Max(all))
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
	c := exec.Command(client, "run", "--limit", "none", "--concurrency", connections, "--out", out, "--progress", "off",
		"-o", "json", in)
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
