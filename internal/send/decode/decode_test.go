package decode_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/paceline-go/paceline/internal/send/decode"
	"github.com/paceline-go/paceline/internal/testkit/coded"
)

func codings(fields ...string) decode.Codings {
	return decode.Of(http.Header{"Content-Encoding": fields})
}

// answer is a document that compresses, and has a part that does not.
func answer() []byte {
	rng := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	b.WriteString(`{"choices":[`)
	for range 1000 {
		fmt.Fprintf(&b, `{"text":"%x"},`, rng.Uint64())
	}
	b.WriteString(`{}],"usage":{"prompt_tokens":7,"completion_tokens":5}}`)
	return b.Bytes()
}

// fed is what a Decoder makes of pieces.
func fed(c decode.Codings, pieces ...[]byte) (plain []byte, err error) {
	d := decode.New(c, func(p []byte) { plain = append(plain, p...) })
	for _, p := range pieces {
		d.Feed(p)
	}
	err = d.End()
	return plain, err
}

func TestCodings(t *testing.T) {
	want := answer()
	for _, c := range coded.All {
		t.Run(c.Name, func(t *testing.T) {
			raw := c.Encode(want)
			for name, r := range map[string]io.Reader{"at once": bytes.NewReader(raw), "byte by byte": iotest.OneByteReader(bytes.NewReader(raw)), "with the error": iotest.DataErrReader(bytes.NewReader(raw))} {
				if got, err := io.ReadAll(codings(c.Field).NewReader(r)); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(want), err)
				}
			}
			if got, err := fed(codings(c.Field), raw); err != nil || !bytes.Equal(got, want) {
				t.Errorf("fed at once: %d bytes of %d, %v", len(got), len(want), err)
			}
			var pieces [][]byte
			for rest := raw; len(rest) > 0; {
				n := min(1+rand.IntN(700), len(rest))
				pieces, rest = append(pieces, rest[:n]), rest[n:]
			}
			if got, err := fed(codings(c.Field), pieces...); err != nil || !bytes.Equal(got, want) {
				t.Errorf("fed in %d pieces: %d bytes of %d, %v", len(pieces), len(got), len(want), err)
			}
			if got, err := codings(c.Field).Prefix(raw, 100); err != nil || string(got) != string(want[:100]) {
				t.Errorf("the beginning is %q, %v", got, err)
			}
			small := []byte(`{"error":{"message":"Please retry in 6s."}}`)
			short := c.Encode(small)
			for cut := range short {
				if got, err := codings(c.Field).Prefix(short[:cut], 100); err != nil || !bytes.HasPrefix(small, got) {
					t.Errorf("cut at %d: %q, %v", cut, got, err)
				}
			}
			for _, field := range []string{strings.ToUpper(c.Field), " " + c.Field + " ,identity", "identity," + c.Field + ";q=1"} {
				if got, err := codings(field).Prefix(short, 100); err != nil || !bytes.Equal(got, small) {
					t.Errorf("%q: %q, %v", field, got, err)
				}
			}
		})
	}
	if got, err := codings("gzip", "br").Prefix(coded.All[5].Encode(want), 10); string(got) != `{"choices"` || err != nil {
		t.Errorf("in two fields: %q, %v", got, err)
	}
}

// Each event is there when the piece of its flush was fed, whatever comes later.
func TestEachEventAtItsFlush(t *testing.T) {
	var events []string
	for i := range 100 {
		events = append(events, fmt.Sprintf("data: {\"n\":%d}\n\n", i))
	}
	events[0] = ":\n\n"
	for _, c := range coded.All {
		var got strings.Builder
		d := decode.New(codings(c.Field), func(p []byte) { got.Write(p) })
		for i, piece := range c.Events(events...) {
			for n := range piece { // byte by byte
				d.Feed(piece[n : n+1])
			}
			if want := strings.Join(events[:min(i+1, len(events))], ""); got.String() != want {
				t.Fatalf("%s, after event %d: %q", c.Name, i, got.String()[min(len(want)-20, got.Len()):])
			}
		}
		if err := d.End(); err != nil {
			t.Error(c.Name, err)
		}
	}
}

func TestWhatIsNotCoded(t *testing.T) {
	text := `{"error":{"message":"Please retry in 6s."}}`
	zipped := string(coded.All[0].Encode([]byte(text)))
	framed := string(coded.All[4].Encode([]byte(text)))
	for _, c := range []struct {
		name, field, raw, want string
		err                    error
	}{
		{"nothing, gzip", "gzip", "", "", nil},
		{"nothing, br", "br", "", "", nil},
		{"nothing, deflate", "deflate", "", "", nil},
		{"nothing, zstd", "zstd", "", "", nil},
		{"an empty document in br", "br", string(coded.All[3].Encode(nil)), "", nil},
		{"an older name", "x-gzip", zipped, text, nil},
		{"text for gzip", "gzip", text, text, nil},
		{"text for deflate", "deflate", text, text, nil},
		{"text for br", "br", text, text, nil},
		{"text for zstd", "zstd", text, text, nil},
		{"text for two", "gzip, br", text, text, nil},
		{"one of two", "gzip, br", string(coded.All[3].Encode([]byte(text))), text, nil},
		{"short text", "br", "slow down", "slow down", nil},
		{"text that is not English", "gzip", "{\"message\":\"désolé, trop de requêtes\"}", "{\"message\":\"désolé, trop de requêtes\"}", nil},
		{"text cut within a character", "gzip", "{\"message\":\"trop de requêtes d\xc3\xa9 plus\"}", "{\"message\":\"trop de requêtes dé plus\"}", nil},
		{"two members", "gzip", zipped + zipped, text + text, nil},
		{"two frames", "zstd", framed + framed, text + text, nil},
		{"zeros at the end", "gzip", zipped + "\x00\x00\x00\x00", text, nil},
		{"a frame to skip", "zstd", "\x50\x2a\x4d\x18\x02\x00\x00\x00ab" + framed, text, nil},
		{"an unknown coding", "compress", "\x1f\x9d\x90\x00", "", decode.ErrUnknown},
		{"an unknown coding of text", "UTF-8", text, text, nil},
		{"three codings", "gzip, gzip, gzip", zipped, "", decode.ErrUnknown},
		{"an unknown one of two", "gzip, secret", zipped, "", decode.ErrUnknown},
		{"not gzip", "gzip", "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09", "", decode.ErrDamaged},
		{"not br", "br", "\xff\xff\xff\xff", "", decode.ErrDamaged},
		{"not deflate", "deflate", "\x07\xff\xff", "", decode.ErrDamaged},
		{"not zstd", "zstd", "\x00\x01\x02\x03\x04\x05", "", decode.ErrDamaged},
		{"a window of 128 MiB", "zstd", "\x28\xb5\x2f\xfd\x00\x88\x01\x00\x00", "", decode.ErrBounds},
		{"a document of 1 GiB in one window", "zstd", "\x28\xb5\x2f\xfd\xa0\x00\x00\x00\x40\x01\x00\x00", "", decode.ErrBounds},
	} {
		got, err := fed(codings(c.field), []byte(c.raw))
		if string(got) != c.want || !errors.Is(err, c.err) || err != nil && c.err == nil {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
		if read, err2 := io.ReadAll(codings(c.field).NewReader(strings.NewReader(c.raw))); !bytes.Equal(read, got) || fmt.Sprint(err2) != fmt.Sprint(err) {
			t.Errorf("%s: read %q, %v; fed %q, %v", c.name, read, err2, got, err)
		}
	}
}

// A body that is cut gives what is there, and says so.
func TestCut(t *testing.T) {
	want := answer()
	for _, c := range coded.All {
		raw := c.Encode(want)
		for _, cut := range []int{1, 2, 9, len(raw) / 2, len(raw) - 1} {
			got, err := fed(codings(c.Field), raw[:cut])
			if whole := bytes.Equal(want, got); !bytes.HasPrefix(want, got) || err != io.ErrUnexpectedEOF && !whole {
				t.Errorf("%s, cut at %d of %d: %d bytes, %v", c.Name, cut, len(raw), len(got), err)
			}
		}
		broken := errors.New("connection reset")
		r := io.MultiReader(bytes.NewReader(raw[:len(raw)/2]), iotest.ErrReader(broken))
		if _, err := io.ReadAll(codings(c.Field).NewReader(r)); err != broken {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}

// A small body that grows without end is not read to its end.
func TestBomb(t *testing.T) {
	zeros := make([]byte, 8<<20)
	for _, c := range coded.All {
		raw := c.Encode(zeros)
		n := 0
		d := decode.New(codings(c.Field), func(p []byte) { n += len(p) })
		d.Feed(raw)
		err := d.End()
		if most := 1<<20 + 200*len(raw); !errors.Is(err, decode.ErrBounds) && len(zeros) > most || n > most {
			t.Errorf("%s: %d bytes of %d, %v", c.Name, n, len(raw), err)
		}
		if got, err := codings(c.Field).Prefix(raw, 64<<10); len(got) != 64<<10 || err != nil {
			t.Errorf("%s: the beginning has %d bytes, %v", c.Name, len(got), err)
		}
	}
}

// Decoders that are given up half-way leave nothing behind, and all of them together stay within
// the bound.
func TestGivenUp(t *testing.T) {
	before := runtime.NumGoroutine()
	begin := map[string][]byte{}
	for _, c := range coded.All {
		begin[c.Name] = c.Encode(answer())[:500]
	}
	var open []*decode.Decoder
	for i := range 5000 {
		c := coded.All[i%len(coded.All)]
		d := decode.New(codings(c.Field), func([]byte) {})
		d.Feed(begin[c.Name])
		open = append(open, d)
	}
	if taken := decode.Taken(); taken <= 0 || taken > decode.MostMemory {
		t.Errorf("%d bytes are taken", taken)
	}
	for _, d := range open {
		if err := d.End(); err == nil || err != d.End() {
			t.Error(err)
		}
		d.Feed([]byte("more"))
	}
	if taken := decode.Taken(); taken != 0 {
		t.Errorf("%d bytes are still taken", taken)
	}
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(deadline); {
		runtime.Gosched() // a goroutine that has said its last word may still have to go
	}
	if left := runtime.NumGoroutine() - before; left > 0 {
		t.Errorf("%d goroutines are left", left)
	}
}

// The windows that servers ask for are counted, of br as they grow.
func TestWindowsAreCounted(t *testing.T) {
	large := make([]byte, 5<<20)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range large {
		large[i] = byte(rng.Uint32())
	}
	var wide bytes.Buffer
	b := brotli.NewWriterOptions(&wide, brotli.WriterOptions{Quality: 0, LGWin: 24})
	b.Write(large)
	b.Close()
	var frame bytes.Buffer
	z, _ := zstd.NewWriter(&frame, zstd.WithWindowSize(8<<20), zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	z.Write(large)
	z.Flush()
	for name, c := range map[string]struct {
		field string
		raw   []byte
		least int64
	}{"br": {"br", wide.Bytes()[:wide.Len()-10], 8 << 20}, "zstd": {"zstd", frame.Bytes()[:1000], 8 << 20}} {
		var open []*decode.Decoder
		unread := 0
		for range 60 {
			d := decode.New(codings(c.field), func([]byte) {})
			d.Feed(c.raw)
			open = append(open, d)
			if taken := decode.Taken(); taken > decode.MostMemory {
				t.Fatalf("%s: %d bytes are taken by %d", name, taken, len(open))
			}
			if len(open) == 1 && decode.Taken() < c.least {
				t.Errorf("%s: one takes %d bytes", name, decode.Taken())
			}
		}
		for _, d := range open {
			if err := d.End(); errors.Is(err, decode.ErrBounds) {
				unread++
			}
		}
		if unread == 0 || unread > 40 || decode.Taken() != 0 {
			t.Errorf("%s: %d of %d are beyond the bound, %d bytes are left", name, unread, len(open), decode.Taken())
		}
	}
}

// A thread that its goroutine has locked may decode, and so may others the same body.
func TestLockedThread(t *testing.T) {
	raw := coded.All[0].Encode(answer())
	var got []byte
	d := decode.New(codings("gzip"), func(p []byte) { got = append(got, p...) })
	locked := make(chan struct{})
	go func() {
		defer close(locked)
		runtime.LockOSThread()
		d.Feed(raw[:1000])
	}()
	<-locked
	d.Feed(raw[1000:])
	if err := d.End(); err != nil || len(got) != len(answer()) {
		t.Error(len(got), err)
	}
}

// Any bytes, in any pieces, under any codings: what is fed is what is read, and stays in bounds.
func FuzzDecode(f *testing.F) {
	small := []byte(`{"usage":{"prompt_tokens":7,"completion_tokens":5}}`)
	for i, c := range coded.All {
		f.Add(c.Field, c.Encode(small), uint64(i))
	}
	f.Add("UTF-8", small, uint64(1))
	f.Add("gzip", small, uint64(1))
	f.Fuzz(func(t *testing.T, field string, raw []byte, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var pieces [][]byte
		for rest := raw; len(rest) > 0; {
			n := 1 + rng.IntN(len(rest))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		c := codings(field)
		got, err := fed(c, pieces...)
		if len(got) > 1<<20+200*len(raw) {
			t.Fatalf("%d bytes of %d", len(got), len(raw))
		}
		read, err2 := io.ReadAll(io.LimitReader(c.NewReader(bytes.NewReader(raw)), 4<<20))
		if errors.Is(err, decode.ErrBounds) {
			read = read[:min(len(read), len(got))]
		} else if !c.None() && fmt.Sprint(err) != fmt.Sprint(err2) && !(errors.Is(err, decode.ErrDamaged) && errors.Is(err2, decode.ErrDamaged)) {
			t.Errorf("fed %v, read %v", err, err2)
		}
		damaged := errors.Is(err, decode.ErrDamaged) // then the pieces decide how much comes before the error
		if !c.None() && !bytes.Equal(got, read) && !damaged {
			t.Errorf("fed %q, read %q", got, read)
		}
		if decode.Taken() != 0 {
			t.Errorf("%d bytes are still taken", decode.Taken())
		}
		c.Prefix(raw, 100)
	})
}

func BenchmarkFeed(b *testing.B) {
	events := make([]string, 200)
	for i := range events {
		events[i] = fmt.Sprintf("data: {\"id\":\"chatcmpl-1\",\"choices\":[{\"delta\":{\"content\":\"word %d\"}}]}\n\n", i)
	}
	for _, c := range coded.All {
		b.Run(c.Name+"/event", func(b *testing.B) {
			pieces := c.Events(events...)
			b.ReportAllocs()
			for b.Loop() {
				d := decode.New(codings(c.Field), func([]byte) {})
				for _, p := range pieces {
					d.Feed(p)
				}
				d.End()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(pieces)), "ns/event")
		})
		b.Run(c.Name+"/document", func(b *testing.B) {
			raw := c.Encode([]byte(`{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":7,"completion_tokens":5}}`))
			b.ReportAllocs()
			for b.Loop() {
				d := decode.New(codings(c.Field), func([]byte) {})
				d.Feed(raw)
				d.End()
			}
		})
	}
}
