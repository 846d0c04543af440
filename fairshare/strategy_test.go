package fairshare_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/limit/mono"
)

const (
	ms = time.Millisecond
	s  = time.Second
)

func at(d time.Duration) mono.Time { return mono.Time(d) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestSharingText(t *testing.T) {
	type file struct{ Sharing fairshare.Sharing }
	for sharing, text := range map[fairshare.Sharing]string{fairshare.Racing: "racing", fairshare.Shared: "shared", fairshare.Local: "local"} {
		want := `{"Sharing":"` + text + `"}`
		if b, err := json.Marshal(file{sharing}); err != nil || string(b) != want {
			t.Errorf("%v marshals to %s, %v", sharing, b, err)
		}
		var f file
		if err := json.Unmarshal([]byte(want), &f); err != nil || f.Sharing != sharing || f.Sharing.String() != text {
			t.Errorf("%s unmarshals to %v, %v", want, f.Sharing, err)
		}
	}
	if err := json.Unmarshal([]byte(`{"Sharing":"both"}`), &file{}); err == nil || !strings.Contains(err.Error(), `"both" is none of racing, shared, local`) {
		t.Errorf("Sharing both: %v", err)
	}
	if _, err := fairshare.Sharing(3).MarshalText(); err == nil || fairshare.Sharing(3).String() != "sharing 3" {
		t.Errorf("Sharing 3 is %v and marshals: %v", fairshare.Sharing(3), err)
	}
}
