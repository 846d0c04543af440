package keyring

import (
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Carry makes what the limits of a key have used count in others, to. It is for a key whose answered
// requests nobody noted one by one. Its requests in flight join the others by themselves. Usage that
// still counts in the day may no longer count in the minute. So each part of the limits gets what its
// counterpart has used. A counterpart that does not describe itself gives nothing. number is for
// limit.Sent.
func Carry(now mono.Time, number func() uint64, from, to limit.Limiter) {
	olds, news := limit.Parts(from), limit.Parts(to)
	for i, part := range news {
		old := olds // if the two are not made of the same parts, each replaces all
		if len(olds) == len(news) {
			old = olds[i : i+1]
		}
		var used limit.Cost
		for _, was := range old {
			for _, u := range limit.AppendUsage(nil, was, now) {
				if !u.InFlight {
					used[u.Unit] = max(used[u.Unit], u.Used-u.Open)
				}
			}
			was, isOld := was.(*limit.Produced)
			if p, is := part.(*limit.Produced); is && isOld {
				was.CarryTo(now, p)(now)
			}
		}
		Count(now, number(), part, used, limit.Accepted)
	}
}

// Copy is Carry to a new limiter, whose memory is then that of the other one as far as that can be written.
func Copy(now mono.Time, number func() uint64, from, fresh limit.Limiter) {
	if limit.Keeps(from) != nil || limit.Configuration(from) != limit.Configuration(fresh) {
		Carry(now, number, from, fresh)
		return
	}
	if err := limit.Restore(fresh, limit.AppendState(nil, from)); err != nil {
		panic("keyring: " + err.Error()) // cannot fail: it is of the same configuration
	}
}

// Count makes usage count in a limiter as of now, as that of one request with this result.
func Count(now mono.Time, number uint64, l limit.Limiter, used limit.Cost, as limit.Result) {
	s := &limit.Sent{At: now, Number: number, Cost: used}
	l.Admit(s)
	l.Settle(now, s, &limit.Outcome{Result: as})
}
