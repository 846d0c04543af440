package journal

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A checksum stands for all lines of a file, in their order.
func TestStarts(t *testing.T) {
	input := func(ids string) *Starts {
		s := &Starts{}
		for i, id := range strings.Fields(ids) {
			s.Add(id, 2*i+1, i >= 1)
		}
		return s
	}
	at := time.Unix(1_800_000_000, 0)
	began := func(s *Starts, line int) int {
		when, ok := s.At(line)
		if !ok {
			return -1
		}
		return int(when.Sub(at) / time.Hour)
	}
	var known []Start
	for run, c := range []struct {
		ids  string
		want string // hours after at when lines 3, 5, 7 began
		news bool
	}{
		{"a b c", "0 0 -1", true}, {"a b c", "0 0 -1", false}, {"a b c d", "0 0 2", true}, {"a b c d", "0 0 2", false},
		{"a b d", "4 4 -1", true}, {"x b c", "5 5 -1", true}, {"ab c d", "6 6 -1", true}, {"a b", "7 -1 -1", true}, {"a b c", "0 0 -1", false}, {"a", "-1 -1 -1", false},
	} {
		s := input(c.ids)
		news, isNews := s.Open(known, at.Add(time.Duration(run)*time.Hour))
		if isNews {
			known = append(known, news)
		}
		if got := fmt.Sprint(began(s, 3), began(s, 5), began(s, 7)); got != c.want || isNews != c.news {
			t.Errorf("run %d, %s: %s %v, expected %s %v", run, c.ids, got, isNews, c.want, c.news)
		}
	}
}
