package fairshare

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// silentUnknown is the law for an unknown quota of servers whose answers are only served or
// limited. It is the law of silentBucket with times in seconds, since there are no tokens to reckon
// in. All sharers of a quota quicken alike in time, and a process that sends more is refused more
// often.
//
//	untouched ── limited ──► away ── served ──► measuring ── limited, after enough was served ──► measured
//
// Beyond that it needs a beginning. While it is untouched, requests go as answers come, few in
// flight. Away, one request asks at a time, each after four times as long as the one before. The
// first guess at the quota is the amount served until the first refusal, in the time until there
// was more. It is right for windows, and too much for a bucket that was full. The amount that is
// served after that decides.
//
// A process that is refused at the same pace again and again is alone, as others would make the
// pace vary. It comes nearer to that pace, and tries more rarely whether there is more. A process
// that is refused soon after a refusal is far from a pace that can be kept. It slows more each
// time.
type silentUnknown struct {
	stage   unknownStage
	began   mono.Time
	heardAt mono.Time
	answers int     // while untouched
	known   float64 // 1/s: the rate of a known limit beside it; 0: there is none
	needs   float64 // the requests in flight for that rate, with the slowest answer so far
	// The latest two instants at which a multiple of lap was answered.
	laps   [2]mark
	first  float64 // the amount served until the first refusal, or towards its end
	exact  bool    // the first guess is of a whole window
	window float64 // s: how long the quota takes to come back

	row      int       // refusals in a row
	rowBegan mono.Time // when the first of them was sent
	last     mono.Time // and the latest

	empty mono.Time     // when the quota was last empty after enough was served
	base  float64       // the amount that had been sent by then
	idle  time.Duration // and the idle time until then

	refused mono.Time     // when a request was last refused after others were served
	busy    time.Duration // the idle time until then
	even    int           // refusals at the same pace
	anchor  float64       // that pace
	lately  [4]float64    // paces of refusals, the latest last
	soon    int           // refusals soon one after another
}

// mark is the amount sent up to an instant.
type mark struct {
	at   mono.Time
	sent float64
}

type unknownStage uint8

const (
	untouched unknownStage = iota // never refused
	away                          // refused, and nothing served since
	measuring                     // served again; not enough yet for a conclusion
	measured
)

const (
	roomFirst   = 4.0   // requests in flight at the beginning: as many are refused at once
	roomWay     = 8.0   // and so many more for each second of an answer's time
	roomMost    = 12.0  // the most of those
	roomAnswers = 512.0 // one more for so many answers
	roomTime    = 15.0  // and for so many seconds
	roomKnown   = 2.0   // × rate × answer's time: the least beside a known limit
	lap         = 64

	awayFirst  = 1.0 // s: the first wait
	awayMore   = 4.0 // the factor of the next
	awaySpread = 0.5 // the part of a wait that is drawn
	waitLeast  = 1.0 / 16
	lastsMore  = 2.0 // × the time away: a process that was served for longer has not only used up a window

	climbs        = 0.5   // × n with each answer as long as requests were served only after a wait
	searchesExact = 0.001 // as searches, where the first guess is of a whole window
	searchTime    = 4.0   // windows: the time to search for e times as much

	plateau   = 100.0 // s: the time for which a pace is kept after a refusal
	plateauOf = 10.0  // windows: at least
	evenPart  = 0.02  // a refusal at a pace within this fraction is at the same pace
	// From the second on each doubles the plateau, and halves how much a refusal slows.
	evenMost  = 5
	evenSlows = 0.02 // the least slowing
	soonPart  = 0.25 // of a plateau: a refusal after less comes soon
	soonMost  = 4    // each slows by as much again

	// Of a plateau: the least time to quicken by quickensMost, if one answer comes in that time.
	quickensIn = 0.1

	averagedMost  = 4.0  // × n: the largest average that may slow
	averagedClose = 1.15 // × n: an average below that says nothing
	paceLeast     = 1e-9 // s
)

// windows are the usual windows of servers, in seconds.
var windows = [...]float64{86400, 3600, 900, 600, 300, 60, 10, 1}

// windowWithin returns a usual window above low and not above high; high, if there is none.
func windowWithin(low, high float64) float64 {
	for _, w := range windows {
		if low < w && w <= high {
			return w
		}
	}
	return high
}

// around returns the fastest pace at which the quota was lately used up, after it had been kept for
// a while. It is n if there was none. A hiccup of the path makes a refusal come at a slower pace.
func (u *silentUnknown) around(n float64) float64 {
	fastest := 0.0
	for _, pace := range u.lately {
		if pace > 0 && (fastest == 0 || pace < fastest) {
			fastest = pace
		}
	}
	if fastest == 0 {
		return n
	}
	return fastest
}

// pace keeps n within the possible range.
func (u *silentUnknown) pace(f *Fair, n float64) float64 {
	return min(max(n, paceLeast), f.tokens(f.config.MaxWait))
}

func (u *silentUnknown) answer(f *Fair, now mono.Time, s *sighting, retryAfter time.Duration) {
	if u.heardAt == mono.Min {
		u.began, u.heardAt = s.at, s.at
	}
	switch {
	case s.limited:
		u.limited(f, now, s, retryAfter)
	case u.stage == untouched:
		u.open(f, now, s)
	default:
		u.served(f, now, s)
	}
	u.heardAt = s.at
}

// open lets more requests be in flight as long as nothing was refused. It allows more on a long
// way, since they are as few in a second. Beside a known limit it allows at least twice what that
// needs, since some answers come later than others.
func (u *silentUnknown) open(f *Fair, now mono.Time, s *sighting) {
	if u.answers++; u.answers%lap == 0 {
		u.laps = [...]mark{u.laps[1], {s.at, s.sum}}
	}
	room := min(float64(u.answers)+1, roomFirst+min(roomWay*u.way(now, s), roomMost)) + float64(u.answers)/roomAnswers +
		now.Sub(u.began).Seconds()/roomTime
	u.needs = max(u.needs, roomKnown*u.known*u.way(now, s))
	room = max(room, u.needs)
	f.account.plan(now, s, 0, 0)
	f.room, f.planned = int(min(room, 1<<30)), 0
}

// way returns how many seconds the answer took.
func (u *silentUnknown) way(now mono.Time, s *sighting) float64 { return 2 * now.Sub(s.mid).Seconds() }

func (u *silentUnknown) served(f *Fair, now mono.Time, s *sighting) {
	gap := s.at.Sub(u.heardAt).Seconds()
	switch {
	case u.stage == away:
		u.back(f, s)
	case u.stage == measured:
		f.n *= 1 - u.quickens(f, s, gap)
	case u.first == 0:
		if s.seq > f.revised {
			f.n *= climbs
			f.revised = f.seq
		}
	case u.exact: // unless others had used up the window
		f.n *= 1 - max(u.quickens(f, s, gap), min(searchesExact, gap/(searchTime*u.window)))
	default:
		f.n *= 1 - max(u.quickens(f, s, gap), min(searches, gap/(searchTime*u.window)))
	}
	u.row = 0
	f.n = u.pace(f, f.n)
	step := f.n
	if u.stage == measuring && s.sum-u.base < averagedLeast*s.cost { // one after another at first
		step = max(step, u.way(now, s))
	}
	pace := step * (1 + jitters*(f.config.Rng.Float64()-0.5))
	f.account.plan(now, s, f.span(pace-step+step*(f.sum-s.sum)), f.span(step))
	f.planned = f.span(pace)
}

// back makes the first guess, when a request is served again. If the quota was away for about as
// long as it had lasted or longer, the amount served is all of a window. Otherwise the pace of the
// end was too much.
func (u *silentUnknown) back(f *Fair, s *sighting) {
	u.stage = measuring
	lasted, dead := u.rowBegan.Sub(u.began).Seconds(), s.mid.Sub(u.rowBegan).Seconds()
	if from := u.laps[0]; from.sent > 0 && lasted > lastsMore*dead {
		u.window = windowWithin(u.last.Sub(u.rowBegan).Seconds(), dead)
		u.first -= from.sent
		f.n = u.rowBegan.Sub(from.at).Seconds() / max(u.first, 1)
	} else {
		u.window = windowWithin(u.last.Sub(u.began).Seconds(), s.mid.Sub(u.began).Seconds())
		u.exact = true
		f.n = u.window / max(u.first, 1)
	}
	// Others had used it up, and the time of that says nothing of a window.
	if u.first < averagedLeast*s.cost {
		u.window = 1
	}
	u.base, u.refused, u.busy = s.sum-s.cost, s.at, s.idle
}

// quickens returns by which part the pace quickens, after a gap: more the longer nothing was
// refused. A process that asks rarely learns rarely, and then quickens by more at once.
func (u *silentUnknown) quickens(f *Fair, s *sighting, gap float64) float64 {
	t := (s.at.Sub(u.refused) - (s.idle - u.busy)).Seconds() / u.long()
	most := min(quickensMost*max(1, gap/(quickensIn*u.long())), climbs)
	return min(most, 3*quickens*t*t*min(gap, 2*f.n)/u.long())
}

// long returns the seconds for which a pace is kept.
func (u *silentUnknown) long() float64 {
	return max(plateau, plateauOf*u.window) * math.Pow(2, float64(max(u.even-1, 0)))
}

func (u *silentUnknown) limited(f *Fair, now mono.Time, s *sighting, retryAfter time.Duration) {
	if u.row++; u.row == 1 {
		u.rowBegan = s.at
	}
	u.last = s.at
	if u.stage == untouched {
		u.stage, u.first = away, s.sum-s.cost
		u.found(f, s)
	}
	wait := awayFirst * (1 - awaySpread/2 + awaySpread*f.config.Rng.Float64())
	if u.stage == away {
		f.n = wait
	} else {
		switch u.row {
		case 1:
			u.measure(f, s)
		case 2:
			f.n = u.pace(f, f.n*slowsAgain)
		}
		wait = max(f.n, waitLeast) * (1 + spreadAfter*f.config.Rng.Float64())
	}
	f.wait(now, wait*math.Pow(awayMore, float64(min(u.row, 30)-1)), retryAfter)
	f.stale = f.seq
}

// found notes that the quota is empty. Requests in flight are assumed to be refused, too.
func (u *silentUnknown) found(f *Fair, s *sighting) { u.base, u.empty, u.idle = f.sum, s.at, s.idle }

// measure learns from the first refusal after a request was served. The quota was empty once
// before. So the amount sent since is the inflow, if it is a bucket that did not overflow
// meanwhile. Otherwise the refused pace is nearer to the truth. Few requests measure little, so
// they are counted together with the next.
func (u *silentUnknown) measure(f *Fair, s *sighting) {
	served := max(0, s.sum-s.cost-u.base)
	average := (s.at.Sub(u.empty) - (s.idle - u.idle)).Seconds() / max(served, 1)
	enough := served >= averagedLeast*s.cost
	// As much came again as was there first: a window.
	again := u.stage == measuring && u.first > 0 && served >= u.first/2
	switch {
	case again || average < averagedClose*f.n:
	case u.stage == measuring:
		f.n = average
	case enough || average > averagedMost*f.n:
		f.n = math.Sqrt(f.n * min(average, averagedMost*f.n))
	}
	u.slow(f, s)
	if again || enough {
		u.stage = measured
		u.found(f, s)
	}
	u.refused, u.busy = s.at, s.idle
}

// slow slows after a refusal, by more after others.
func (u *silentUnknown) slow(f *Fair, s *sighting) {
	if u.stage == measured && (s.at.Sub(u.refused)-(s.idle-u.busy)).Seconds() < u.long()*soonPart {
		u.soon = min(u.soon+1, soonMost)
	} else {
		u.soon = 0
		if u.stage == measured {
			u.lately = [...]float64{u.lately[1], u.lately[2], u.lately[3], f.n}
		}
	}
	if math.Abs(f.n/u.anchor-1) <= evenPart {
		u.even = min(u.even+1, evenMost)
	} else {
		u.even, u.anchor = 0, f.n
	}
	by := (slows - 1) * (1 + float64(u.soon)) / math.Pow(2, float64(max(u.even-1, 0)))
	f.n = u.pace(f, f.n*(1+max(by, evenSlows)))
}
