package strategy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/lab/strategy"
)

func TestSharingText(t *testing.T) {
	type file struct{ Sharing strategy.Sharing }
	for sharing, text := range map[strategy.Sharing]string{strategy.Racing: "racing", strategy.Shared: "shared", strategy.Local: "local"} {
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
	if _, err := strategy.Sharing(3).MarshalText(); err == nil || strategy.Sharing(3).String() != "sharing 3" {
		t.Errorf("Sharing 3 is %v and marshals: %v", strategy.Sharing(3), err)
	}
}
