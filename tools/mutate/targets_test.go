package mutate

// Target is a package to plant faults in.
type Target struct {
	Package string
	// Share is its part of a sample, in thousandths: so many that each file is met now and then.
	Share int
}

// Targets are the core and what stands next to it, and what people write and read at the edges.
var Targets = []Target{
	{"limit/mono", 10},
	{"pool/backoff", 15},
	{"limit/window", 50},
	{"limit", 115},
	{"fairshare", 80},
	{"internal/core/stack", 100},
	{"internal/core/scheduler", 70},
	{"internal/core/queue", 51},
	{"internal/core/dispatch", 55},
	{"internal/core/keyring", 25},
	{"internal/core/node", 50},
	{"internal/core/snooze", 6},
	{"internal/core/histogram", 5},
	{"internal/core/ability", 3},
	{"internal/core/ceiling", 5},
	{"share", 10},
	{"provider/classify", 60},
	{".", 38},
	{"pool", 17},
	{"observe", 5},
	{"transport", 60},
	{"internal/send", 43},
	{"internal/send/costs", 4},
	{"internal/app/durable", 20},
	{"internal/app/journal", 25},
	{"internal/app/run", 5},
	{"internal/app/proxy", 5},
	{"internal/app/run/tally", 5},
	{"internal/app/run/format", 12},
	{"internal/app/run/meter", 3},
	{"internal/app/run/output", 13},
	{"internal/app/run/sending", 7},
	{"provider", 30},
	{"contrib/xrate", 8},
	{"internal/app/run/input", 12},
	{"internal/app/auth", 12},
	{"internal/text/rate", 5},
	{"internal/app/screen", 11},
}
