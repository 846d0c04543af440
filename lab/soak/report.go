package soak

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Door is what became of the requests of one door.
type Door struct {
	Name string `json:"name"`
	// Made is the requests that the door was given, and Lost those that the server served and that
	// the door never ended. The others without an end are left for another time.
	Made int `json:"made"`
	Lost int `json:"lost"`
	// Done is the requests that ended with a success, and Empty those of them that the server never
	// served.
	Done   int    `json:"done"`
	Empty  int    `json:"empty"`
	Server Counts `json:"server"`
	// Repeats is the requests that the server served more than once, and Unnamed those of them of
	// which nobody was informed.
	Repeats int `json:"repeats"`
	Unnamed int `json:"unnamed"`
	// Rewound is how often the store went back in time.
	Rewound  int      `json:"rewound,omitempty"`
	Examples []string `json:"examples,omitempty"`
}

// Report is the result of a soak.
type Report struct {
	For   time.Duration `json:"for_ns"`
	Doors []Door        `json:"doors"`
	// Secrets is the files with a key in them.
	Secrets int    `json:"secrets"`
	Leak    string `json:"leak,omitempty"` // the first of these
}

func (k *soak) report(drivers []*driver) (*Report, error) {
	r := &Report{For: time.Since(k.began).Round(time.Second)}
	var keys []string
	for _, d := range drivers {
		keys = append(keys, d.key)
		one := Door{Name: d.name, Made: d.made, Done: d.succeeded, Rewound: d.rewound}
		one.Server, one.Examples = k.server.countsOf(d.door)
		for id, n := range k.server.served(d.door) {
			if !d.ended[id] && !d.left[id] {
				one.Lost++
			}
			if n < 2 {
				continue
			}
			one.Repeats++
			// A run that was interrupted has no result yet for a request that is left: only the same command
			// again would name it.
			if n > d.sent[id] && !d.named[id] && (d.ended[id] || !d.left[id]) {
				one.Unnamed++
				one.Examples = append(one.Examples, fmt.Sprintf("%s was served %d times, and no result says so", id, n))
			}
		}
		one.Empty = d.empty(k.server.served(d.door))
		r.Doors = append(r.Doors, one)
	}
	var err error
	r.Secrets, r.Leak, err = leaks(k.Dir, keys)
	return r, err
}

// Failed names the promises that were broken; empty: none.
func (r *Report) Failed() string {
	var all []string
	add := func(door string, n int, what string) {
		if n > 0 {
			all = append(all, fmt.Sprintf("%s: %d %s", door, n, what))
		}
	}
	for _, d := range r.Doors {
		add(d.Name, d.Server.Over, "above the limit")
		add(d.Name, d.Server.Early, "before the time that the server had said")
		add(d.Name, d.Unnamed, "repeats without a name")
		add(d.Name, d.Lost, "lost")
		add(d.Name, d.Empty, "done, and never served")
		if d.Server.Served == 0 {
			add(d.Name, 1, "door without one served request")
		}
	}
	add("all", r.Secrets, "files with a key in them")
	return strings.Join(all, "; ")
}

// WriteText writes a table.
func (r *Report) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "door\tmade\tarrived\tserved\tin part\tfailed after it\tcoded\ttimes said\tunsaid\tabove the "+
		"limit\ttoo early\trepeats\tunnamed\tlost\tempty\trewound\t")
	for _, d := range r.Doors {
		s := d.Server
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", d.Name, d.Made, s.Arrived,
			s.Served, s.Parts,
			s.Failed, s.Coded, s.Said, s.Unsaid, s.Over, s.Early, d.Repeats, d.Unnamed, d.Lost, d.Empty, d.Rewound)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, d := range r.Doors {
		for _, e := range d.Examples {
			fmt.Fprintf(w, "%s: %s\n", d.Name, e)
		}
	}
	_, err := fmt.Fprintf(w, "%v; files with a key in them: %d %s\n", r.For, r.Secrets, r.Leak)
	return err
}
