package cli

import (
	"testing"
	"time"
)

func TestOfTime(t *testing.T) {
	share := OfTime(90*time.Second, 5*time.Minute, 9*time.Second)
	if got, want := share.Line().Fit(0, plain), "1m30s of 5m0s  30 %  ETA 21s  9s so far"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	over := OfTime(6*time.Minute, 5*time.Minute, 9*time.Second)
	if got, want := over.Line().Fit(0, plain), "5m0s of 5m0s  100 %  9s so far"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func plain(_, text string) string { return text }
