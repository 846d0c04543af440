package chart_test

import (
	"github.com/paceline-go/paceline/chart"
	"testing"
	"time"
)

func TestShot(t *testing.T) {
	for name, f := range map[string]chart.Figure{"ten": story(10), "thousand": story(1000), "few": few()} {
		for _, s := range []string{".svg", ".png", ".html"} {
			a := time.Now()
			if err := chart.WriteFile("/tmp/shots/"+name+s, f); err != nil {
				t.Fatal(err)
			}
			t.Log(name, s, time.Since(a))
		}
	}
}
