package dashboard

import (
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline/observe"
)

// frame is the data of one second for all viewers.
type frame struct {
	number  int
	sources int // grows when the sources differ from those of the frame before
	data    []byte
}

// frameJSON is a frame as it is sent.
type frameJSON struct {
	Number int `json:"number"`
	// At is when the frame was made, in milliseconds since 1970. The page shows all instants
	// relative to it, since the viewer's clock may be wrong.
	At      int64        `json:"at"`
	Beside  []string     `json:"beside,omitempty"`
	Sources []sourceJSON `json:"sources"`
}

// mostBeside is how many lines of Config.Beside are shown, and longestBeside how many bytes of one.
const mostBeside, longestBeside = 100, 300

// beside returns the lines of Config.Beside, bounded.
func (p *Page) beside() (lines []string) {
	if p.config.Beside == nil {
		return nil
	}
	for _, line := range p.config.Beside() {
		if len(lines) == mostBeside {
			break
		}
		if len(line) > longestBeside {
			line = strings.ToValidUTF8(line[:longestBeside], "") + "…"
		}
		lines = append(lines, line)
	}
	return lines
}

// look returns the latest frame, which is a second old at most, and when the next will come. The
// first viewer in a second makes it.
func (p *Page) look() (*frame, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.frame != nil && now.Sub(p.looked) < every {
		return p.frame, p.looked.Add(every)
	}
	f := &frame{number: 1}
	if p.frame != nil {
		f.number, f.sources = p.frame.number+1, p.frame.sources
	}
	told := frameJSON{Number: f.number, At: now.UnixMilli(), Beside: p.beside(), Sources: []sourceJSON{}}
	var snapshots []observe.Snapshot
	for _, source := range p.sources() {
		snapshots = append(snapshots, tame(source.Snapshot()))
	}
	if p.follow(snapshots) {
		f.sources++
	}
	for i, s := range snapshots {
		told.Sources = append(told.Sources, view(s, p.histories[i].add(now, &s)))
	}
	f.data = encode(told)
	p.frame, p.looked, p.snapshots = f, now, snapshots
	return f, now.Add(every)
}

func (p *Page) sources() []observe.Source {
	if p.config.Live != nil {
		return p.config.Live()
	}
	return p.config.Sources
}

// follow connects each Snapshot to the history of its source, and reports whether the sources
// differ from those before. A source that began to count anew counts as another.
func (p *Page) follow(snapshots []observe.Snapshot) (others bool) {
	known := make(map[string]*history, len(snapshots))
	var histories []*history
	for i := range snapshots {
		id := strconv.Itoa(i)
		if s := &snapshots[i]; p.config.Live != nil {
			id = s.Name + "\x00" + s.Since.String()
			if known[id] != nil { // two of one name
				id += strconv.Itoa(i)
			}
		}
		h := p.known[id]
		if h == nil {
			h = new(history)
		}
		known[id], histories = h, append(histories, h)
	}
	others = !slices.Equal(histories, p.histories)
	p.known, p.histories = known, histories
	return others
}

// tame puts 0 for shares that are no numbers, which JSON does not have: any package may write a
// Source.
func tame(s observe.Snapshot) observe.Snapshot {
	wild := func(f float64) bool { return math.IsNaN(f) || math.IsInf(f, 0) }
	for i := range s.Limits {
		if wild(s.Limits[i].Share) {
			s.Limits = slices.Clone(s.Limits)
			s.Limits[i].Share = 0
		}
	}
	for i, c := range s.Clients {
		if wild(c.Share) || wild(c.Weight) {
			s.Clients = slices.Clone(s.Clients)
			s.Clients[i].Share, s.Clients[i].Weight = 0, 0
		}
	}
	return s
}

// pastJSON is the first message to a new viewer.
type pastJSON struct {
	Title   string           `json:"title"`
	Version string           `json:"version"` // of the files of the page
	SlotMS  int64            `json:"slot_ms"`
	Forms   bool             `json:"forms,omitempty"` // this viewer can use them
	Sources []pastSourceJSON `json:"sources"`
}

type pastSourceJSON struct {
	Name    string          `json:"name"`
	Since   time.Time       `json:"since"`
	History historyJSON     `json:"history"`
	Events  []observe.Event `json:"events"`
}

// past returns the history up to the latest frame, for the viewer who sent r.
func (p *Page) past(r *http.Request) []byte {
	p.look()
	forms := p.config.Forms != nil && p.config.Forms(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	told := pastJSON{Title: p.config.Title, Version: version(), SlotMS: slot.Milliseconds(), Forms: forms,
		Sources: []pastSourceJSON{}}
	for i := range p.snapshots {
		s := &p.snapshots[i]
		told.Sources = append(told.Sources,
			pastSourceJSON{s.Name, s.Since, p.histories[i].all(), last(s.Events, mostPastEvents)})
	}
	return encode(told)
}

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // the types are ours, and JSON can represent all of it: floats are rounded
	}
	return data
}
