package soak

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// doorReport is what became of the requests of one door.
type doorReport struct {
	Name string
	// Made is the requests that the door was given, and Lost those that the server served and that
	// the door never ended. The others without an end are left for another time.
	Made int
	Lost int
	// Done is the requests that ended with a success, and Empty those of them that the server never
	// served.
	Done   int
	Empty  int
	Server Counts
	// Repeats is the requests that the server served more than once, and Unnamed those of them of
	// which nobody was informed.
	Repeats int
	Unnamed int
	// Rewound is how often the store went back in time.
	Rewound  int
	Examples []string
}

// report is the result of a soak.
type report struct {
	For   time.Duration
	Doors []doorReport
	// Secrets is the files with a key in them.
	Secrets int
	Leak    string // the first of these
}

func (k *soak) outcome(drivers []*driver) (*report, error) {
	r := &report{For: time.Since(k.began).Round(time.Second)}
	var keys []string
	for _, d := range drivers {
		keys = append(keys, d.key)
		one := doorReport{Name: d.name, Made: d.made, Done: d.succeeded, Rewound: d.rewound}
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
	r.Secrets, r.Leak, err = leaks(k.dir, keys)
	return r, err
}

// failed names the promises that were broken; empty: none.
func (r *report) failed() string {
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

// write writes a table.
func (r *report) write(w io.Writer) error {
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
