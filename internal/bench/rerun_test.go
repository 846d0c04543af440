package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
)

func TestPublishedRuns(t *testing.T) {
	p, err := RunPublished(t.Context(), 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Runs) != len(reruns)+len(cleared) || len(p.Jitter) != 9 || p.Interrupted {
		t.Fatalf("%d runs, %d of jitter", len(p.Runs), len(p.Jitter))
	}
	// The published single runs, give or take: none of an order of magnitude but the times to clear, which say what a
	// request took.
	for _, r := range p.Runs {
		if r.Clear != nil {
			continue
		}
		for what, v := range map[string]PublishedValue{"limited": r.Retry, "max sleep": r.MaxSleep, "sd": r.SD} {
			if v.P5 > v.P50 || v.P50 > v.P95 || v.P50 < *v.Published/3 || v.P50 > 3**v.Published {
				t.Errorf("%s × %v, %d min: %s %+v, published %v", r.Strategy, r.Multiplier, r.Minutes, what, v, *v.Published)
			}
		}
	}
	var text, again bytes.Buffer
	if err := p.WriteText(&text); err != nil || strings.Count(text.String(), "\n") < 25 {
		t.Errorf("%v\n%s", err, text.String())
	}
	if err := p.WriteJSON(&again); err != nil || !json.Valid(again.Bytes()) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if p, err := RunPublished(ctx, 5, nil); err != nil || !p.Interrupted || len(p.Runs) > 0 {
		t.Errorf("%v, %+v", err, p)
	}
}

func TestPlaceOfAPublishedValue(t *testing.T) {
	for x, want := range map[float64]string{0.9: "below", 1: "within", 2: "within", 3: "within", 3.1: "above"} {
		if got := (PublishedValue{&x, 1, 2, 3}).Place(); got != want {
			t.Errorf("%v is %s, want %s", x, got, want)
		}
	}
}
