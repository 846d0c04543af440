package transport

import "github.com/paceline-go/paceline/limit"

// NewRule returns what stands in the Gate of a partition, for the laws of limiters.
func NewRule(own limit.Limiter) limit.Limiter {
	r, err := newRule(own, own == nil)
	if err != nil {
		panic(err)
	}
	return r
}
