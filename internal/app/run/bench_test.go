//go:build unix

package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// serves is set in the process that is BenchmarkRun's server.
const serves = "PACELINE_BENCH_SERVES"

// TestBenchServer is that server, and no test. It ends when its standard input does.
func TestBenchServer(t *testing.T) {
	if os.Getenv(serves) == "" {
		t.Skip("for BenchmarkRun")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(l.Addr())
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		l.Close()
	}()
	_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"ok":true}`))
	}))
}

func startBenchServer(b *testing.B) (address string) {
	c := exec.Command(os.Args[0], "-test.run=^TestBenchServer$")
	c.Env = append(os.Environ(), serves+"=1")
	in, err := c.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err == nil {
		_, err = fmt.Fscanln(out, &address)
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close(); _ = c.Wait() })
	return address
}

// BenchmarkRun is a whole run without a limit, with results and journal. It reports allocations per
// request, and the CPU time of this process without its server. BenchmarkRun of lab/micro compares it with hey.
func BenchmarkRun(b *testing.B) {
	address := startBenchServer(b)
	for _, connections := range []int{64, 8, 1} {
		b.Run(fmt.Sprintf("%d", connections), func(b *testing.B) {
			var input bytes.Buffer
			for i := range b.N {
				fmt.Fprintf(&input, `{"id":"q%d","url":"http://%s/api/request?req_id=%d"}`+"\n", i, address, i)
			}
			r, err := New(Config{Concurrency: connections, Out: filepath.Join(b.TempDir(), "out.jsonl")})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			before := cpuTime(b)
			b.ResetTimer()
			err = errors.Join(r.Check("in", bytes.NewReader(input.Bytes())), r.Open())
			if err == nil {
				err = r.Send(context.Background(), "in", bytes.NewReader(input.Bytes()))
			}
			n, cerr := r.Close()
			b.ReportMetric(float64(cpuTime(b)-before)/1e3/float64(b.N), "cpu-µs/op")
			if err = errors.Join(err, cerr); err != nil || n.Done != b.N || n.Lost != 0 {
				b.Fatalf("%+v, %v", n, err)
			}
		})
	}
}

// cpuTime returns the CPU time of this process, in nanoseconds.
func cpuTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkCheck is the first of the two times that a run reads its input.
func BenchmarkCheck(b *testing.B) {
	var input bytes.Buffer
	for i := range b.N {
		fmt.Fprintf(&input, `{"id":"q%d","url":"https://127.0.0.1:12345/api/request?req_id=%d"}`+"\n", i, i)
	}
	r, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	before := cpuTime(b)
	b.ResetTimer()
	if err := r.Check("in", bytes.NewReader(input.Bytes())); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(cpuTime(b)-before)/1e3/float64(b.N), "cpu-µs/op")
}
