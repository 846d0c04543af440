package run

import (
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/paceline-go/paceline/internal/app/run/meter"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/tokens"
)

// A row has the tokens of its answer, each under its name.
func TestSelectedTokens(t *testing.T) {
	srv, _ := counting(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}`)
	})
	b := newBench(t)
	var err error
	if b.config.Shape, err = output.CompileShape("id=.id, in=.input_tokens, out=.output_tokens", output.JSONL); err != nil {
		t.Fatal(err)
	}
	if b.config.Meter, err = meter.New(meter.Config{Host: "server", Count: tokens.Sum}); err != nil {
		t.Fatal(err)
	}
	out := b.run(fmt.Sprintf(`{"id":"a","method":"POST","url":"%s/v1/chat/completions","body":{"model":"m","max_tokens":9,"messages":[]}}`, srv.URL))
	rows, rerr := os.ReadFile(b.config.Out)
	if want := `{"id":"a","in":7,"out":5}` + "\n"; out.err != nil || string(rows) != want {
		t.Errorf("%v, %v: %s, want %s", out.err, rerr, rows, want)
	}
}
