package nodesim_test

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/paceline-go/paceline/lab/nodesim"
)

// planted is a fault of the law: edits of the text of internal/core/node, made in a copy, and runs
// that find it.
type planted struct {
	name, means string
	late        bool // it shows only after more than soon, by the clock of the runs
	edits       []edit
	// aims are runs at which the fault shows, and in which nothing is wrong without it. Each must find it.
	aims []aim
	// wrong finds the fault in a run. If nil, a refusal does.
	wrong func(r *nodesim.Report) bool
}

// edit replaces a text that occurs once in a file of internal/core/node.
type edit struct{ file, text, with string }

// aim changes a run of a few nodes that all want more than there is.
type aim func(c *nodesim.Config)

// faults are planted by TestFaultsAreFound. A change of the law in a text that is edited here renews the
// fault with it.
var faults = []planted{
	{
		name:  "grants kept after their end",
		late:  true,
		means: "a node uses grants after their end, and after it was given up",
		edits: []edit{
			{"node.go", "at >= n.until", "false"},
			{"turn.go", "n.in = false", "n.in = false\n\treturn"},
		},
		aims: []aim{func(c *nodesim.Config) { c.Trouble = nodesim.Trouble{Pause: 3 * time.Second} }},
	},
	{
		name:  "Fresh not asked",
		means: "a request is written although its leave has ended",
		edits: []edit{{"node.go", "return s.pieces == n.pieces && max(p, n.last) < n.until", "return true"}},
		aims:  []aim{func(c *nodesim.Config) { c.Trouble = nodesim.Trouble{Stall: 0.01} }},
	},
	{
		name:  "told twice",
		means: "an answer of a turn of unknown outcome is reported again although that turn was put",
		edits: []edit{{"turn.go", "a.told == 0 || a.told > turn", "true"}},
		aims:  []aim{func(c *nodesim.Config) { c.Trouble = nodesim.Trouble{Lose: 0.03} }},
		wrong: func(r *nodesim.Report) bool { return r.Refused > 0 || r.Told > r.Answered },
	},
	{
		name:  "answers forgotten",
		means: "an answer of a turn of unknown outcome is taken for reported",
		edits: []edit{{
			"turn.go",
			"a.told = n.turn\n\t\t\t}\n\t\t}",
			"a.told = n.turn\n\t\t\t}\n\t\t}\n\t\tn.wasPut(n.turn, t.book.Turn)",
		}},
		// Races are lost where the store is far away; near it, nodes that keep apart lose none.
		aims: []aim{func(c *nodesim.Config) { c.Trouble, c.StoreWay = nodesim.Trouble{Lose: 0.03}, even }},
	},
	{
		name:  "clock bounds swapped",
		means: "the clock's bounds are used the wrong way round",
		edits: []edit{
			{"node.go", "lo, _ := n.bounds.by(p)\n\tat := l.Add(-lo)", "_, lo := n.bounds.by(p)\n\tat := l.Add(-lo)"},
			{"turn.go", "_, hi := t.bounds.by(a.at)", "hi, _ := t.bounds.by(a.at)"},
		},
		aims: []aim{func(c *nodesim.Config) { c.StoreWay = even }},
	},
	{
		name:  "shift ahead",
		means: "a clock that was set is corrected to the latest that it can be",
		edits: []edit{{
			"turn.go",
			"if at != now || unsure > 0 {",
			"if at != now || unsure > 0 {\n\t\t\tat, unsure = at.Add(unsure), 0",
		}},
		aims: []aim{func(c *nodesim.Config) { c.Trouble, c.StoreWay = nodesim.Trouble{Set: 2 * time.Second}, even }},
	},
	{
		name:  "slack not taken off",
		means: "the time by which the ledger was set behind is not taken off what others know",
		edits: []edit{{"turn.go", "n.bounds.slacken(b.Slack)", "n.bounds"}},
		aims:  []aim{func(c *nodesim.Config) { c.Trouble, c.StoreWay = nodesim.Trouble{Set: 2 * time.Second}, even }},
	},
	{
		name:  "quiet time left out",
		late:  true,
		means: "a store that forgot grants at once",
		edits: []edit{{
			"turn.go",
			"b.Quiet = now.Add(n.config.TTL + n.config.Late).Add(limit.Span(n.config.New()))",
			"b.Quiet = now",
		}},
		aims: []aim{
			func(c *nodesim.Config) { c.Trouble = nodesim.Trouble{Remove: 10 * time.Second} },
			func(c *nodesim.Config) { *c = removed(rolling(200, time.Second)) },
			func(c *nodesim.Config) { *c = removed(bucket(100, 20, time.Second)) },
		},
	},
	{
		name:  "newcomers trust the clock",
		late:  true,
		means: "a newcomer believes the store's clock",
		edits: []edit{{"turn.go", "case r.Steady:", "case true:"}},
		aims: []aim{func(c *nodesim.Config) {
			c.Rested, c.Trouble = true, nodesim.Trouble{Kill: 2 * time.Second, Newborn: true}
		}},
	},
	{
		name:  "no new era",
		late:  true,
		means: "a newcomer believes the store's clock without a new era, and may set the ledger's time back",
		edits: []edit{{"turn.go", "if *now < b.Latest {", "if true {\n\t\treturn\n\t}\n\tif *now < b.Latest {"}},
		aims: []aim{func(c *nodesim.Config) {
			c.Nodes, c.Length = 3, 480*time.Second
			c.Trouble = nodesim.Trouble{Kill: 8 * time.Second, Newborn: true, OnOff: 12 * time.Second}
		}},
	},
	{
		name:  "given up early",
		means: "the units of a silent node are given up at the end of its grants",
		edits: []edit{{"turn.go", "t.givenUp(&e); end <= t.now", "e.Until; end <= t.now"}},
		aims: []aim{func(c *nodesim.Config) {
			c.Way, c.Length = slow, 240*time.Second
			c.Trouble = nodesim.Trouble{Pause: 4 * time.Second}
		}},
	},
	{
		name:  "arrived when sent",
		means: "a request counts as arrived when it was sent",
		edits: []edit{{"node.go", "answer{at: n.last,", "answer{at: s.At,"}},
		aims:  []aim{func(*nodesim.Config) {}},
	},
	{
		name:  "granted ahead and used at once",
		means: "units that are granted ahead are used at once",
		edits: []edit{{"turn.go", "n.pool.add(g)", "g.at = mono.Min\n\t\tn.pool.add(g)"}},
		aims:  []aim{func(*nodesim.Config) {}},
	},
	{
		name:  "part taken early",
		means: "a node begins with its part once grants have ended, while granted units still count",
		edits: []edit{{
			"split.go",
			"s.from = p.Add(n.config.TTL + n.config.Late).Add(limit.Span(n.fresh))",
			"s.from = p.Add(n.config.TTL)",
		}},
		aims: []aim{func(c *nodesim.Config) { *c = splitting(rolling(20, 5*time.Second), c.Nodes, c.Seed) }},
	},
	{
		name:  "part taken unknown",
		late:  true,
		means: "a node that was stopped, or has just come, takes a part, too",
		edits: []edit{{"split.go", "!n.in || !known", "!n.in || false && !known"}},
		aims: []aim{func(c *nodesim.Config) {
			*c = splitting(rolling(20, time.Second), c.Nodes, c.Seed)
			c.Pause = 5 * time.Second
		}},
	},
	{
		name:  "parts forgotten",
		means: "requests that went by parts are forgotten as soon as the store is back",
		edits: []edit{{"split.go", "own := t.split.on()", "if true {\n\t\treturn\n\t}\n\town := t.split.on()"}},
		aims:  []aim{func(c *nodesim.Config) { *c = splitting(rolling(20, 5*time.Second), c.Nodes, c.Seed) }},
	},
	{
		name:  "parts unseen",
		late:  true,
		means: "the first that comes when the store is back does not see that others may send by their parts",
		edits: []edit{{"split.go", "others := t.othersSplit()", "others := false"}},
		aims: []aim{func(c *nodesim.Config) {
			*c = splitting(rolling(20, 5*time.Second), c.Nodes, c.Seed)
			c.Kill = 5 * time.Second
		}},
	},
	{
		name:  "part kept after a stop",
		late:  true,
		means: "a node that was stopped goes on with its part",
		edits: []edit{{
			"split.go",
			"s.failed, s.until = n.began, n.began.Add(2*n.config.TTL)",
			"s.failed, s.until = n.began, limit.Never",
		}},
		aims: []aim{func(c *nodesim.Config) {
			*c = splitting(rolling(20, time.Second), c.Nodes, c.Seed)
			c.Pause, c.Nodes, c.Length = 4*time.Second, 6, 960*time.Second
		}},
	},
	{
		name:  "more held than others saw",
		means: "a node holds more before the others have seen that it may",
		edits: []edit{{"may_hold.go", "t.seen(e.Asked)", "true"}},
		aims:  []aim{func(c *nodesim.Config) { doomed(c); c.OnOff = 4 * time.Second }},
	},
	{
		name:  "newcomers not bounded",
		late:  true,
		means: "nodes that not all have seen are not bounded together",
		edits: []edit{{
			"may_hold.go",
			"most := t.mine.Most\n\tif t.steady {",
			"most := t.mine.Most\n\tif t.steady || most == (limit.Cost{}) {",
		}},
		aims: []aim{func(c *nodesim.Config) { doomed(c); c.Nodes = 2 }},
	},
	{
		name:  "told ahead",
		means: "a node reports that a request will have arrived",
		edits: []edit{{"may_hold.go", "-o.ArrivedAgo > t.ahead()", "false && -o.ArrivedAgo > t.ahead()"}},
		aims:  []aim{func(c *nodesim.Config) { besieged(c, rolling(100, 2*time.Second), 8, 5); c.Hush = true }},
	},
	{
		name:  "recalled late",
		late:  true,
		means: "a node that was away for long says what the store had",
		edits: []edit{{
			"gather.go",
			"return p < n.put.Add(late-late/8)",
			"return true || p < n.put.Add(late-late/8)",
		}},
		aims: []aim{func(c *nodesim.Config) { doomed(c); c.Nodes, c.OnOff = 2, 4*time.Second }},
	},
	{
		name:  "recalled what was open",
		late:  true,
		means: "the recalled book has what each node held then, and not what it may hold",
		edits: []edit{{"recall.go", "e.Open[u] = max(e.Open[u], e.Most[u], e.Asks[u])", "_ = u"}},
		aims:  []aim{doomed},
	},
	{
		name:  "told since left out",
		means: "the recalled book leaves out answers that were reported since",
		edits: []edit{{
			"recall.go",
			"b.Nodes = append(b.Nodes, told, unseen)",
			"b.Nodes, _ = append(b.Nodes, unseen), told",
		}},
		aims: []aim{func(c *nodesim.Config) { besieged(c, rolling(200, 4*time.Second), 2, 1) }},
	},
	{
		name:  "newcomers left out",
		means: "the recalled book leaves out what newcomers since then hold",
		edits: []edit{{
			"recall.go",
			"b.Nodes = append(b.Nodes, told, unseen)",
			"b.Nodes, _ = append(b.Nodes, told), unseen",
		}},
		aims: []aim{func(c *nodesim.Config) { doomed(c); c.Nodes = 2 }},
	},
	{
		name:  "unsure turn left out",
		means: "a node takes its last turn that was surely put for its last turn",
		edits: []edit{{"recall.go", "t.was == nil", "true"}},
		aims:  []aim{func(c *nodesim.Config) { doomed(c); c.Nodes, c.Deaf = 2, true }},
	},
	{
		name:  "recalled by who has left",
		late:  true,
		means: "a node says what the store had although it may have left",
		edits: []edit{{"recall.go", "if t.goes {", "if false {"}},
		aims: []aim{func(c *nodesim.Config) {
			*c = base(rolling(60, 2*time.Second), 2, c.Seed)
			c.Way, c.StoreWay = sharp, near
			doomed(c)
			c.Deaf, c.OnOff = true, 2*time.Second
		}},
	},
	{
		name:  "returned and not bounded",
		late:  true,
		means: "a node that was away for so long that nobody waited for it holds what it held",
		edits: []edit{{
			"may_hold.go",
			"read.Sub(t.put) <= t.config.away(soon)",
			"read.Sub(t.put) <= t.config.away(soon) || true",
		}},
		aims: []aim{doomed},
	},
	{
		name:  "returned and not warned",
		late:  true,
		means: "where the store forgot lately, a node that was away for somewhat less holds what it held",
		edits: []edit{{"may_hold.go", "soon := t.book.warns(t.now.Add(-t.config.TTL))", "soon := false"}},
		aims: []aim{func(c *nodesim.Config) {
			*c = base(rolling(60, 2*time.Second), 3, c.Seed)
			c.Way, c.StoreWay, c.Rested = sharp, near, true
			doomed(c)
			c.Pause, c.Short = 4*time.Second, true
		}},
	},
	{
		name:  "absent too soon",
		late:  true,
		means: "a node that was away for a short while is taken for one that would be bounded as a newcomer",
		edits: []edit{{"may_hold.go", "away := c.away(b.warns(b.Latest)) + c.TTL/4", "away := c.TTL / 4"}},
		aims:  []aim{doomed},
	},
	{
		name:  "older book gathered",
		late:  true,
		means: "a node that comes to a store that forgot, and knows a later state, keeps it to itself",
		edits: []edit{{"recall.go", "return n.vouches(b, p) && n.knows.Turn > b.Base", "return false"}},
		aims:  []aim{doomed},
	},
	{
		name:  "copy unnoticed",
		means: "a node takes an old copy of the book for the present",
		edits: []edit{{"store_lives.go", "case b.isBefore(&n.latest):\n\t\treturn true", "case true:\n\t\treturn false"}},
		aims:  []aim{func(c *nodesim.Config) { c.Rested, c.Rewind, c.Length = true, 8*time.Second, 120*time.Second }},
	},
	{
		name:  "lives forgotten",
		means: "a node knows the copies of its own life alone",
		edits: []edit{
			{"store_lives.go", "return slices.Contains(s.lives, b.Life)", "return false"},
			{"store_lives.go", "case b.strays(&n.latest):", "case false:"},
		},
		aims: []aim{func(c *nodesim.Config) { c.Rested, c.Rewind, c.Length = true, 8*time.Second, 240*time.Second }},
	},
	{
		name:  "stray lives",
		late:  true,
		means: "a node takes a life that it does not know for a later one",
		edits: []edit{{"store_lives.go", "case b.strays(&n.latest):", "case false:"}},
		aims: []aim{func(c *nodesim.Config) {
			c.Rested, c.Rewind, c.Waken, c.Length = true, 1500*time.Millisecond, true, 480*time.Second
			c.Busy, c.OnOff = 1, 20*time.Second
		}},
	},
	{
		name:  "nobody awaited",
		means: "a node that was not there lately takes an old copy for the present before the others come",
		edits: []edit{{"overdue.go", "return p.Sub(n.overdue.since) < most", "return false"}},
		aims: []aim{func(c *nodesim.Config) {
			c.Rested, c.Steady, c.Rewind, c.Waken, c.Length = true, true, 8*time.Second, true, 240*time.Second
			c.Busy, c.OnOff = 1, 20*time.Second
		}},
	},
	{
		name:  "few gathered",
		late:  true,
		means: "the answers that were reported are taken for bounded however few nodes have come",
		edits: []edit{{"gather.go", "if all.bounds() {", "if true {"}},
		aims:  []aim{func(c *nodesim.Config) { besieged(c, rolling(200, 4*time.Second), 2, 1) }},
	},
	{
		name:  "more told",
		late:  true,
		means: "a node reports more than it may hold while few others have turns",
		edits: []edit{{"gather.go", "if many == 0 {", "if true {"}},
		aims:  []aim{func(c *nodesim.Config) { besieged(c, rolling(200, 4*time.Second), 8, 1) }},
	},
	{
		name:  "told unseen",
		means: "a node that not all have seen reports something, too",
		edits: []edit{{"gather.go", "seen <= many && whole != left", "seen <= many && whole != left && false"}},
		aims:  []aim{func(c *nodesim.Config) { besieged(c, rolling(60, 4*time.Second), 8, 1); c.Heir = true }},
	},
	{
		name:  "lapsed and fresh again",
		means: "a request whose leave lapsed is written once the node is back",
		edits: []edit{{
			"node.go",
			"return s.pieces == n.pieces && max(p, n.last) < n.until",
			"return max(p, n.last) < n.until",
		}},
		aims: []aim{func(c *nodesim.Config) {
			c.Trouble, c.Length = nodesim.Trouble{Stall: 0.01, Slow: 200 * ms}, 480*time.Second
		}},
	},
	{
		name:  "places given up early",
		means: "others take the places of a node that cannot reach the store while its requests go on",
		edits: []edit{{"places.go", "return e.Until.Add(PlacesKept - n.config.TTL)", "return e.Until.Add(n.config.Late)"}},
		aims:  []aim{atOnce(nodesim.Trouble{Apart: 20 * time.Second})},
	},
	{
		name:  "places used for ever",
		late:  true,
		means: "a node that cannot reach the store begins requests after it was given up",
		edits: []edit{{"places.go", "return placesHold", "return 2 * PlacesKept"}},
		aims: []aim{func(c *nodesim.Config) {
			atOnce(nodesim.Trouble{Cut: 1, CutFrom: 10 * time.Second})(c)
			c.Length = 720 * time.Second
		}},
	},
	{
		name:  "the living seen as ended",
		means: "a process that is stopped is taken for one that has ended",
		edits: []edit{{"places.go", "n.config.Ended != nil && n.config.Ended(e.ID)", "true"}},
		aims:  []aim{atOnce(nodesim.Trouble{Pause: 4 * time.Second, Short: true})},
	},
	{
		name:  "unknown and free",
		means: "the place of a request that may still arrive is used for the next",
		edits: []edit{{"node.go", "n.places != nil && o.Result != limit.Unknown", "n.places != nil"}},
		aims:  []aim{atOnce(nodesim.Trouble{Mute: 0.05})},
	},
	{
		name:  "unknown and told",
		means: "a request that may still arrive is reported as ended at a store whose clock nobody can set",
		edits: []edit{{"may_hold.go", "t.steady && t.places == nil", "t.steady"}},
		aims:  []aim{atOnce(nodesim.Trouble{Mute: 0.05, Steady: true})},
	},
	{
		name:  "places kept from others",
		means: "a node that always has requests in line gives no place up while others wait",
		edits: []edit{{"places.go", "n.hasPlaces() >= l.most[0]", "false"}},
		aims:  []aim{atOnce(nodesim.Trouble{})},
		wrong: func(r *nodesim.Report) bool {
			return r.Refused > 0 || r.Ended > 59*time.Second && slices.Min(r.InFlight) < time.Second
		},
	},
}

// atOnce has nodes share four places, one of which comes after the others.
func atOnce(trouble nodesim.Trouble) aim {
	return func(c *nodesim.Config) {
		*c = places(4, c.Nodes, 10*time.Second, c.Seed)
		c.Trouble, c.Later, c.LaterAt = trouble, 1, time.Second
		if trouble.Mute > 0 {
			c.Holds = nil // many requests, all of which may be mute
		}
	}
}

// slow is a path on which one in thirty takes up to 4.9 s: less than Late.
func slow(rng *rand.Rand) time.Duration {
	if rng.IntN(30) > 0 {
		return 0
	}
	return time.Duration(rng.Int64N(int64(4900 * ms)))
}

// doomed has the store forget when that is worst.
func doomed(c *nodesim.Config) {
	c.Length, c.Trouble = 960*time.Second, nodesim.Trouble{Doom: 10 * time.Second}
}

// besieged has few of the nodes tell what no other knows when the store forgets.
func besieged(c *nodesim.Config, k kind, nodes, inside int) {
	*c = base(k, nodes, c.Seed)
	c.Way, c.StoreWay, c.Rested, c.Length = sharp, near, true, 480*time.Second
	c.Trouble = nodesim.Trouble{Siege: 10 * time.Second, Inside: inside}
}
