package paceline

import (
	"time"

	"github.com/paceline-go/paceline/internal/core/scheduler"
)

// Class is a party, such as a client, that waits in one lane or several of a Group. At fair limits its lanes count as one: a client
// that waits in many lanes gets no more than one that waits in a single lane. Made by Group.Share. Safe for concurrent use.
type Class struct {
	group *Group
	share *scheduler.Class
}

// ClassConfig describes a Class. The zero value is ready.
type ClassConfig struct {
	// Weight is its part of fair limits, beside those of others who wait. If zero, 1.
	Weight float64
	// HeadStart is its priority. Where a limit is fair, it may go ahead of others with as much as would have been its part in a time
	// of that length, if it has not used that part; and with any amount if nobody else was waiting that long ago. A party that waits
	// all the time gets its part by weight, with a head start or without, so others lose no more than one span of that length. Where a
	// limit is not fair, it is as LaneConfig.HeadStart. It must not be negative.
	HeadStart time.Duration
	// MaxWaiting is the most goroutines that may wait in all its lanes. If zero, any number.
	MaxWaiting int
}

func (c ClassConfig) line() scheduler.ShareConfig {
	return scheduler.ShareConfig{Weight: c.Weight, HeadStart: max(c.HeadStart, 0), Size: c.MaxWaiting}
}

// Class adds a Class, which has no lanes yet; LaneConfig.Share gives it some.
func (j *Group) Class(c ClassConfig) *Class {
	j.mu.Lock()
	defer j.mu.Unlock()
	return &Class{j, j.line.Share(c.line())}
}

// Set changes its configuration, for every goroutine that comes or moves up from now on.
func (s *Class) Set(c ClassConfig) {
	s.group.mu.Lock()
	defer s.group.mu.Unlock()
	s.share.Set(c.line())
}

// Waiting returns how many goroutines wait in all its lanes.
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

// headLocked is by how much earlier than they did the goroutines of a lane count as having come.
func (a *Lane) headLocked() time.Duration {
	if a.share != nil {
		return a.share.share.Config().HeadStart
	}
	return a.start
}
