package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/ratetest"
)

const serveClockLong = `

With --clock 10, the server counts by a virtual clock for ten clients. A client asks it to sleep, and a day passes in
seconds:

  GET /clock/sleep?client=a&seconds=1.5   answers when the sleep of client "a" is over
  GET /clock/leave?client=a               the clock no longer waits for client "a"
  GET /clock/now

Each answer is the clock's time in seconds. The clock starts when all ten sleep, and advances only while all of them
sleep. One client is awake at a time, and requests take no time. To have latency, a client sleeps before and after its request.`

// clockFlag adds --clock to a verb whose server can count by a virtual clock.
func (s *serving) clockFlag(c *cobra.Command) {
	c.Flags().IntVar(&s.clients, "clock", 0, "number of clients of a virtual clock at /clock/; 0 is the real clock")
	s.given = c.Flags()
	c.Long += serveClockLong
}

func (s *serving) checkClock() error {
	if s.clients < 0 || s.clients > ratetest.MostVirtualClients {
		return fmt.Errorf("--clock %d: want 1 to %d clients", s.clients, ratetest.MostVirtualClients)
	}
	for _, other := range []string{"scale", "latency", "latency-after"} {
		if s.clients > 0 && s.given.Changed(other) {
			return fmt.Errorf("--%s does not go with --clock, by which a request takes no time: let clients sleep", other)
		}
	}
	return nil
}

// clocked is the greeting of a server that may have a virtual clock. While the clock stands, the
// usual commands would be refused.
func (s *serving) clocked(g greeting, url string) greeting {
	if s.clients == 0 {
		return g
	}
	return greeting{fmt.Sprintf("%s; a virtual clock for %d clients at %s/clock/", g.what, s.clients, url),
		[]string{"curl " + url + "/clock/now"}}
}
