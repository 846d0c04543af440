package throttle_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/throttle"
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
	type file struct{ Sharing throttle.Sharing }
	for sharing, text := range map[throttle.Sharing]string{throttle.Racing: "racing", throttle.Shared: "shared", throttle.Local: "local"} {
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
	if _, err := throttle.Sharing(3).MarshalText(); err == nil || throttle.Sharing(3).String() != "sharing 3" {
		t.Errorf("Sharing 3 is %v and marshals: %v", throttle.Sharing(3), err)
	}
}
