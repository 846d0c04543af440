package paceline

import (
	"time"

	"github.com/paceline-go/paceline/internal/core/scheduler"
)

// Class is a party, such as a client, that waits in one lane or several of a Group. At fair limits
// its lanes count as one, so many lanes get no more than a single lane. Group.Class makes it. Safe
// for concurrent use.
type Class struct {
	group *Group
	share *scheduler.Class
}

// ClassConfig describes a Class. The zero value is ready.
type ClassConfig struct {
	// Weight is the Class's part of fair limits, relative to other waiting parties. If zero, 1.
	Weight float64
	// HeadStart is the Class's priority: its goroutines go as if they had come that much earlier. With
	// 10 s, they go before each goroutine of others that has waited for less than 10 s. At a fair
	// limit, a Class that always waits uses its head start up. After its part of 10 s it gets its part
	// by Weight, as without one. So others lose 10 s at most. At a limit that is not fair, it acts as
	// LaneConfig.HeadStart. It must not be negative.
	HeadStart time.Duration
	// MaxWaiting is the most goroutines that may wait in all lanes of the Class. If zero, there is
	// no bound.
	MaxWaiting int
	// Reserve is the part of each limit that the Class leaves free, from 0 to 1, for parties that
	// leave less. So these need not wait for what the Class has used. It is asked for and not taken:
	// with N the limit, a request of the Class goes when its cost + Reserve·N could, but at most N.
	// Where one that leaves
	// less waits, the Class leaves as little and the turn decides, so it never starves. If zero, none.
	Reserve float64
}

func (c ClassConfig) line() scheduler.ShareConfig {
	return scheduler.ShareConfig{Weight: c.Weight, HeadStart: max(c.HeadStart, 0), Size: c.MaxWaiting, Reserve: c.Reserve}
}

// Class adds a Class without lanes. LaneConfig.Share puts lanes into it.
func (j *Group) Class(c ClassConfig) *Class {
	j.mu.Lock()
	defer j.mu.Unlock()
	return &Class{j, j.line.Share(c.line())}
}

// Set changes the configuration for every goroutine that comes or moves up from now on.
func (s *Class) Set(c ClassConfig) {
	s.group.mu.Lock()
	defer s.group.mu.Unlock()
	s.share.Set(c.line())
}

// Waiting returns how many goroutines wait in all lanes of the Class.
func (s *Class) Waiting() int {
	s.group.mu.Lock()
	defer s.group.mu.Unlock()
	return s.share.Len()
}

func (s *Class) of() *scheduler.Class {
	if s == nil {
		return nil
	}
	return s.share
}

// headLocked returns by how much earlier the goroutines of a lane count as having come.
func (a *Lane) headLocked() time.Duration {
	if a.share != nil {
		return a.share.share.Config().HeadStart
	}
	return a.start
}
