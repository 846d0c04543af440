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
	{"limit", 140},
	{"fairshare", 90},
	{"internal/core/stack", 70},
	{"internal/core/breaker", 50},
	{"internal/core/scheduler", 80},
	{"internal/core/queue", 70},
	{"internal/core/dispatch", 80},
	{"provider/classify", 50},
	{"internal/send/neterr", 10},
	{".", 38},
	{"pool", 17},
	{"observe", 5},
	{"transport", 60},
	{"internal/send/once", 47},
	{"internal/app/durable", 15},
	{"internal/app/journal", 25},
	{"internal/app/run", 40},
	{"provider", 30},
	{"contrib/xrate", 8},
	{"internal/app/run/input", 12},
	{"internal/app/run/projection", 5},
	{"internal/app/run/filename", 5},
	{"internal/app/auth/bearer", 6},
	{"internal/app/auth/issuer", 6},
	{"internal/text/rate", 5},
	{"internal/text/width", 3},
	{"internal/text/table", 3},
	{"internal/app/screen", 5},
}
