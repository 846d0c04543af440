package baselines

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/lab/bench"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// exchangeRun is how long a run is. It has to be long for a ban to show: the longer the run, the
// less a banned client has reached on average.
const exchangeRun = 10 * time.Minute

// loopback is the latency of the path to the document's server. crowded is a path with a tail that
// no published buffer covers.
var (
	loopback = latency.Uniform(0, 50*time.Millisecond)
	crowded  = latency.Lognormal(10*time.Millisecond, 100*time.Millisecond)
)

// publishedLimiters are the document's limiters in its order, with the rates that it gives; 0 where it gives none.
var publishedLimiters = []struct {
	row, says string
	rate      float64
}{
	{"original", "the original: a gap and a ring", 74},
	{"circular", "the ring alone", 85},
	{"circular+50ms", "the ring, and 50 ms", 0},
	{"circular+100ms", "the ring, and 100 ms", 0},
	{"adaptive, as printed", "adaptive, event loop (as printed)", 84},
	{"adaptive, as printed, threads", "adaptive, threads (as printed)", 77},
	{"adaptive, as described", "adaptive, as described", 0},
}

// exchangeResults are the results of rows, by the exchange they met and by their ID.
type exchangeResults struct {
	free, banning, tail, tailBanning map[string]bench.Result
}

// ofExchange runs the rows with these IDs of an exchange. An ID that ends in "@once" runs without a
// restart of the client.
func (r *run) ofExchange(x bench.Exchange, ids []string) (map[string]bench.Result, error) {
	all := x.Rows()
	var rows []bench.Row
	for _, id := range ids {
		name, once := strings.CutSuffix(id, "@once")
		i := slices.IndexFunc(all, func(row bench.Row) bool { return row.ID() == name })
		if i < 0 {
			return nil, fmt.Errorf("published: no row is %q", name)
		}
		row := all[i]
		if once {
			row.Scenario.Restart = 0
		}
		rows = append(rows, row)
	}
	results, err := bench.Virtual(r.ctx, rows, x.Latency, r.exchangeSeeds(), exchangeRun, nil)
	if err != nil {
		return nil, err
	}
	by := map[string]bench.Result{}
	for i, id := range ids {
		by[id] = results[i]
	}
	return by, nil
}

// exchangeSeeds is fewer seeds, since a run of the exchange has 57,000 requests.
func (r *run) exchangeSeeds() int { return max(r.seeds/10, 1) }

func (r *run) exchanges() (results exchangeResults, err error) {
	var limiters []string
	for _, l := range publishedLimiters {
		limiters = append(limiters, l.row+"/original/nonce")
	}
	others := []string{"model: event loop/original", "model: workers/original", "model: pipelined/original",
		"queue: drop/original/nonce",
		"queue: dlq/original/nonce", "queue: graveyard/original/nonce", "queue: graveyard, backpressure/original/nonce",
		"nonce: timestamp/saturating/nonce", concatenated, concatenated + "@once"}
	for _, what := range []struct {
		into *map[string]bench.Result
		law  latency.Law
		ban  int
		ids  []string
	}{
		{&results.free, loopback, -1, append(slices.Clone(limiters), others...)},
		{&results.banning, loopback, 10, limiters},
		{&results.tail, crowded, -1, limiters},
		{&results.tailBanning, crowded, 10, limiters},
	} {
		if *what.into, err = r.ofExchange(bench.Exchange{Latency: what.law, BanAfter: what.ban}, what.ids); err != nil {
			return results, err
		}
	}
	return results, nil
}

const concatenated = "nonce: timestamp‖thread‖counter/saturating/nonce"

// refused is the percentage of attempts that were answered 429.
func refused(p bench.Result) float64 {
	return 100 * float64(p.Rejected) / float64(max(p.Successes+p.Failures, 1))
}

// expired is the percentage of requests made that ended unsent or unanswered.
func expired(p bench.Result) float64 { return 100 * float64(p.Expired) / float64(max(p.Offered, 1)) }

// exchangeClient is the document about a client of an exchange with five keys.
func exchangeClient(r *run, _ *Page) (Document, error) {
	d := Document{Name: "an exchange client",
		About: fmt.Sprintf("A client with five keys, 20 requests a second each, and rising nonces. A request is useful "+
			"for a second. The author measured it live, in another language. Our reruns are in virtual time: 0 to "+
			"50 ms each way, and a request every 0 to 21 ms. Loops and threads take no time there, so each rate is "+
			"higher. There are "+
			"%d runs of %v minutes, without a ban, as in the document.", r.exchangeSeeds(), exchangeRun.Minutes())}
	x, err := r.exchanges()
	if err != nil {
		return d, err
	}
	late, err := arrivesEarly()
	if err != nil {
		return d, err
	}
	d.Claims = append(limiterClaims(x), late)
	d.Claims = append(d.Claims, modelClaims(x.free)...)
	d.Claims = append(d.Claims, queueClaims(x.free)...)
	d.Claims = append(d.Claims, nonceClaims(x.free)...)
	d.Tables = []Table{limiterTable(x, r.exchangeSeeds()), modelTable(x.free)}
	return d, nil
}

func limiterClaims(x exchangeResults) []Claim {
	row := func(of map[string]bench.Result, name string) bench.Result { return of[name+"/original/nonce"] }
	gap, ring := row(x.free, "original"), row(x.free, "circular")
	gain := ring.Rate/gap.Rate - 1
	fifty, hundred := row(x.free, "circular+50ms"), row(x.free, "circular+100ms")
	fiftyTail, hundredTail := row(x.tail, "circular+50ms"), row(x.tail, "circular+100ms")
	printed := row(x.free, "adaptive, as printed")
	adaptive, adaptiveTail := row(x.free, "adaptive, as described"), row(x.tail, "adaptive, as described")
	return []Claim{
		claim("without the fixed gap", judge(gain > 0, near(gain, 85.0/74-1, 0.25)),
			gap.Rate, ring.Rate, 100*gain, refused(ring)),
		claim("the gain is of", judge(gain < 0.25*(85.0/74-1), gain < 0.75*(85.0/74-1)),
			100*gain, gap.WakeUpsPerAdmission, ring.WakeUpsPerAdmission),
		claim("the gap is redundant: the", judge(refused(ring) == 0), refused(gap), refused(ring)),
		claim("to sleep for exactly",
			judge(printed.Rate > 0.995*fifty.Rate, printed.WakeUpsPerAdmission < fifty.WakeUpsPerAdmission),
			printed.Rate, fifty.Rate, printed.WakeUpsPerAdmission, fifty.WakeUpsPerAdmission),
		claim("an extra 50 to",
			judge(refused(fifty) == 0 && refused(hundred) == 0, refused(fiftyTail) == 0 && refused(hundredTail) == 0),
			refused(fifty), refused(hundred), refused(fiftyTail), refused(hundredTail)),
		claim("a buffer of 1.1", judge(refused(adaptive) < 0.01, refused(adaptiveTail) < 0.01),
			adaptive.Rate, refused(adaptive), adaptiveTail.Rate, refused(adaptiveTail)),
	}
}

// arrivesEarly plays the document's example: one request is 40 ms on the way, and another that is
// sent 1000 ms later is 36 ms on the way.
func arrivesEarly() (Claim, error) {
	x, err := rule.NewExchange(rule.ExchangeConfig{Keys: 1, AnyNonce: true, BanAfter: -1})
	if err != nil {
		return Claim{}, err
	}
	const ms = mono.Time(time.Millisecond)
	for range 20 {
		x.Arrive(40*ms, 0, 0)
	}
	verdict := x.Arrive(1036*ms, 0, 0)
	return claim("two requests sent 1000", judge(verdict == rule.Limited), verdict.String()), nil
}

func modelClaims(x map[string]bench.Result) []Claim {
	loop, threads := x["adaptive, as printed/original/nonce"], x["adaptive, as printed, threads/original/nonce"]
	eventLoop, workers, pipelined := x["model: event loop/original"], x["model: workers/original"],
		x["model: pipelined/original"]
	return []Claim{
		claim("an event loop reaches", judge(loop.Rate > 1.02*threads.Rate),
			loop.Rate, threads.Rate, refused(loop), refused(threads)),
		claim("threads take requests off",
			judge(expired(threads) < 0.95*expired(loop), expired(workers) < 0.95*expired(eventLoop)),
			expired(loop), expired(threads), expired(eventLoop), expired(workers)),
		claim("five keys are too", judge(expired(eventLoop) > 1, expired(pipelined) > 1),
			eventLoop.Rate, expired(eventLoop), pipelined.Rate, expired(pipelined)),
	}
}

func queueClaims(x map[string]bench.Result) []Claim {
	at := func(name string) bench.Result { return x["queue: "+name+"/original/nonce"] }
	drop, dlq, graveyard, pressed := at("drop"), at("dlq"), at("graveyard"), at("graveyard, backpressure")
	return []Claim{
		claim("a queue for dead", judge(expired(dlq) == 0, dlq.InTimePercent >= drop.InTimePercent),
			expired(drop), expired(dlq), 100*float64(graveyard.Dead)/float64(max(graveyard.Offered, 1)),
			dlq.InTimePercent, graveyard.InTimePercent, drop.InTimePercent),
		claim("a request that has failed five", judge(graveyard.Dead == 0),
			graveyard.Dead, graveyard.Offered, graveyard.Rejected),
		claim("with a pause between", judge(dlq.Latency.SinceMade.Mean < 1000),
			dlq.Latency.SinceMade.Mean/1000, dlq.Delay.P99/1000),
		claim("backpressure on the maker",
			judge(pressed.InTimePercent > 99 && pressed.Expired+pressed.Dead == 0),
			pressed.InTimePercent, expired(pressed), pressed.Rate),
	}
}

func nonceClaims(x map[string]bench.Result) []Claim {
	stamps, once, restarted := x["nonce: timestamp/saturating/nonce"], x[concatenated+"@once"], x[concatenated]
	bad := func(p bench.Result) float64 {
		return 100 * float64(p.BadNonce) / float64(max(p.Successes+p.Failures, 1))
	}
	return []Claim{
		claim("timestamps of a millisecond", judge(bad(stamps) > 0.1), bad(stamps)),
		claim("timestamp, thread and counter", judge(bad(once) < 0.01, bad(restarted) < 0.01),
			bad(once), bad(restarted), restarted.Rate),
	}
}

// limiterTable shows each published limiter with and without a ban, on both paths.
func limiterTable(x exchangeResults, seeds int) Table {
	t := Table{Title: "The document's limiters, without a ban (as published) and with one. The ban is for good, at the " +
		"tenth refusal of a key. On the path with a tail, the latency of each way has a median of 10 ms, and one in a " +
		"hundred is above 100 ms",
		Heading: []string{"limiter", "published /s", "no ban /s", "refused %", "ban /s", "keys banned %", "tail, no ban /s",
			"refused %", "tail, ban /s", "keys banned %"}}
	for _, l := range publishedLimiters {
		id, said := l.row+"/original/nonce", "–"
		if l.rate > 0 {
			said = fmt.Sprint(l.rate)
		}
		cells := []string{l.says, said}
		for _, pair := range [][2]map[string]bench.Result{{x.free, x.banning}, {x.tail, x.tailBanning}} {
			free, banned := pair[0][id], pair[1][id]
			cells = append(cells, fmt.Sprintf("%.1f", free.Rate), fmt.Sprintf("%.2f", refused(free)),
				fmt.Sprintf("%.1f", banned.Rate), fmt.Sprint(20*banned.BannedKeys/seeds))
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// modelTable shows the event loop beside threads.
func modelTable(x map[string]bench.Result) Table {
	t := Table{Title: "An event loop and threads",
		Heading: []string{"client", "published /s", "rerun /s", "refused %", "expired %", "answered in time %",
			"wake-ups a request"}}
	for _, c := range []struct{ id, says, rate string }{
		{"adaptive, as printed/original/nonce", "its event loop", "84"},
		{"adaptive, as printed, threads/original/nonce", "its threads", "77"},
		{"model: event loop/original", "a loop, our limiter, one in flight per key", "–"},
		{"model: workers/original", "a worker per key, our limiter", "–"},
		{"model: pipelined/original", "as many in flight as the limit allows", "–"},
	} {
		p := x[c.id]
		t.Rows = append(t.Rows,
			[]string{c.says, c.rate, fmt.Sprintf("%.1f", p.Rate), fmt.Sprintf("%.2f", refused(p)),
				fmt.Sprintf("%.1f", expired(p)),
				fmt.Sprintf("%.1f", p.InTimePercent), fmt.Sprintf("%.2f", p.WakeUpsPerAdmission)})
	}
	return t
}
