package micro

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
	"testing"
)

var (
	requests = flag.Int("requests", 200_000, "requests of a turn of BenchmarkRun")
	against  = flag.String("against", "", "another paceline to measure in BenchmarkRun, as a third")
)

// asServer makes the test binary the server of BenchmarkRun.
const asServer = "PACELINE_TEST_AS_SERVER"

const heyVersion = "github.com/rakyll/hey@v0.1.5"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) == "1" {
		if err := serveBoth(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serveBoth answers over both schemes until its standard input ends. It writes its two URLs to standard
// output, and its certificate to a file.
func serveBoth(file string) error {
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"ok":true,"n":12345}`))
	})
	plain, secure := httptest.NewServer(answer), httptest.NewTLSServer(answer)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	if err := os.WriteFile(file, certificate, 0o600); err != nil {
		return err
	}
	fmt.Println(plain.URL, secure.URL)
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// turn is the result of one turn of a program: requests per second, and CPU time per request.
type turn struct{ rate, micros float64 }

// BenchmarkRun measures `paceline run` beside hey (github.com/rakyll/hey), which keeps nothing. Each
// has a turn an iteration, at a server of net/http that answers with a short JSON. The server is a
// process of its own on this machine, and speaks HTTP/1.1 with TLS and without.
//
// Both programs are built here (hey from the module proxy). run has no limit, and writes its
// results and its journal. Its CPU time is that of the whole process, which reads the input twice
// and the results once more. Each program states its own rate: hey that of its whole run, and run
// that from the first send to the last answer. Ratios are medians, and the least and the most.
func BenchmarkRun(b *testing.B) {
	dir := b.TempDir()
	install := exec.Command("go", "install", heyVersion)
	install.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=", "GOWORK=off")
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "paceline"), "./cmd/paceline")
	build.Dir = filepath.Join("..", "..")
	for _, c := range []*exec.Cmd{install, build} {
		if text, err := c.CombinedOutput(); err != nil {
			b.Fatalf("%v: %v\n%s", c, err, text)
		}
	}
	clients := []string{filepath.Join(dir, "hey"), filepath.Join(dir, "paceline")}
	if *against != "" {
		clients = append(clients, *against)
	}
	urls, stop, err := startServer(filepath.Join(dir, "certificate"))
	if err != nil {
		b.Fatal(err)
	}
	defer stop()
	for _, scheme := range []string{"https", "http"} {
		url, in := urls[scheme]+"/api/request?req_id=", filepath.Join(dir, scheme+".jsonl")
		if err := writeInput(in, url); err != nil {
			b.Fatal(err)
		}
		for _, connections := range []string{"64", "8", "1"} {
			b.Run(scheme+"/"+connections, func(b *testing.B) {
				turns := make([][]turn, len(clients))
				for b.Loop() {
					for i, client := range clients {
						var t turn
						var err error
						if i == 0 {
							t, err = hey(client, connections, url)
						} else {
							t, err = runs(client, connections, in, filepath.Join(dir, "out.jsonl"))
						}
						if err != nil {
							b.Fatal(err)
						}
						turns[i] = append(turns[i], t)
					}
				}
				report(b, clients, turns)
			})
		}
	}
}

// report reports the turns of each client, beside those of hey.
func report(b *testing.B, clients []string, turns [][]turn) {
	b.ReportMetric(0, "ns/op") // the length of an iteration says nothing
	for i, client := range clients {
		var rates, micros, ratios, cpus []float64
		for n, t := range turns[i] {
			rates, micros = append(rates, t.rate), append(micros, t.micros)
			ratios = append(ratios, t.rate/turns[0][n].rate)
			cpus = append(cpus, t.micros/turns[0][n].micros)
		}
		name := filepath.Base(client)
		b.ReportMetric(median(rates), name+"-requests/s")
		b.ReportMetric(median(micros), name+"-CPU-µs")
		if i == 0 {
			continue
		}
		for unit, all := range map[string][]float64{"-rate-of-hey": ratios, "-CPU-of-hey": cpus} {
			b.ReportMetric(median(all), name+unit)
			b.ReportMetric(slices.Min(all), name+unit+"-least")
			b.ReportMetric(slices.Max(all), name+unit+"-most")
		}
	}
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
	c := exec.Command(self, certificate)
	c.Env = append(os.Environ(), asServer+"=1")
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

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

func cpuOf(p *os.ProcessState) float64 {
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
	t.micros = cpuOf(c.ProcessState)
	return t, err
}

func runs(client, connections, in, out string) (t turn, err error) {
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
	return turn{said.Rate, cpuOf(c.ProcessState)}, nil
}
