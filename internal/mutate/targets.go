package mutate

// Target is a package to plant faults in.
type Target struct {
	Package string
	// Share is its part of a sample, in thousandths: so many that each file is met now and then.
	Share int
}

// Targets are the core and what stands next to it, and what people write and read at the edges.
var Targets = []Target{
	{"mono", 10},
	{"backoff", 15},
	{"window", 50},
	{"limit", 140},
	{"throttle", 70},
	{"internal/strategy/slot", 20},
	{"internal/guard", 70},
	{"internal/health", 50},
	{"internal/line", 80},
	{"queue", 70},
	{"dispatch", 80},
	{"verdict", 50},
	{"internal/sight", 10},
	{".", 60},
	{"transport", 60},
	{"internal/wire", 40},
	{"internal/direct", 7},
	{"internal/durable", 15},
	{"internal/journal", 25},
	{"internal/batch", 40},
	{"quota", 30},
	{"ratelike", 8},
	{"internal/handed", 12},
	{"internal/pick", 5},
	{"internal/filename", 5},
	{"internal/bearer", 6},
	{"internal/issuer", 6},
	{"internal/rate", 5},
	{"internal/columns", 3},
	{"internal/tables", 3},
	{"internal/screen", 5},
}
