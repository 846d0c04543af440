package journal

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// Lately is how long ago a process has sent at most that sends at this moment.
const Lately = time.Minute

// SentLately reports whether there is a send in the last minute. A process that only waits is beside nobody.
func (h *History) SentLately(now time.Time) bool {
	return slices.ContainsFunc(h.Sends, func(s Sent) bool { return s.Sent > now.Add(-Lately).UnixNano() })
}

// Beside warns the user of s of a process that sends at this moment, with the same key.
func (s *Note) Beside(o *Note) string {
	way := ""
	for _, at := range s.Servers {
		way = cmp.Or(way, o.Way[at])
	}
	if way == "" || s.Door == o.Door {
		way = fmt.Sprintf("with one paceline proxy for both, or --share sqlite:%s and the same limits for each, they do",
			filepath.Join(filepath.Dir(filepath.Dir(s.path)), "limits.db"))
	}
	return fmt.Sprintf("process %d (paceline %s) sends with the same key to the same server at this moment, and the two do "+
		"not count together: expect refusals; %s", o.PID, o.Door, way)
}
