package mutate

// Target is a package to plant faults in.
type Target struct {
	Package string
	// Share is its part of a sample, in thousandths: so many that each file is met now and then.
	Share int
	// Then are packages whose tests may know better than its own, in the order in which they are asked: quick ones first. A
	// pattern after a space says which of their tests.
	Then []string
}

// Targets are the core and what stands next to it.
var Targets = []Target{
	{"mono", 10, []string{"limit"}},
	{"backoff", 15, []string{"dispatch"}},
	{"window", 60, nil},
	{"limit", 160, []string{"dispatch", ".", "transport"}},
	{"throttle", 90, []string{"internal/strategy", "internal/guard"}},
	{"internal/guard", 80, []string{"dispatch", "transport"}},
	{"internal/health", 50, []string{"dispatch", ".", "transport"}},
	{"internal/line", 90, []string{".", "dispatch"}},
	{"queue", 80, []string{"dispatch", "."}},
	{"dispatch", 80, []string{".", "sim"}},
	{"verdict", 50, []string{"transport"}},
	{"internal/sight", 10, []string{"verdict", "transport"}},
	{".", 60, []string{"transport"}},
	{"transport", 60, nil},
	{"internal/wire", 40, []string{"transport"}},
	{"internal/durable", 15, []string{"internal/journal"}},
	{"internal/journal", 25, []string{"internal/batch"}},
	{"internal/batch", 40, nil},
	{"quota", 30, []string{"verdict", "ratetest/service"}},
}
