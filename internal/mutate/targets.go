package mutate

// Target is a package to plant faults in.
type Target struct {
	Package string
	// Share is its part of a sample, in thousandths: so many that each file is met now and then.
	Share int
	// Then are packages whose tests may know better than its own, in the order in which they are asked: quick ones first.
	Then []string
}

// Targets are the core and what stands next to it.
var Targets = []Target{
	{"mono", 10, []string{"window", "limit"}},
	{"backoff", 15, []string{"internal/guard", "dispatch"}},
	{"window", 60, nil},
	{"limit", 160, []string{"internal/guard", "sim/fleet", "dispatch", "sim", ".", "transport"}},
	{"throttle", 70, []string{"internal/strategy", "sim/scenario", "sim/fleet", "internal/guard", "dispatch"}},
	{"internal/strategy/slot", 20, []string{"internal/strategy", "sim/fleet"}},
	{"internal/guard", 80, []string{"dispatch", "sim", "transport"}},
	{"internal/health", 50, []string{"dispatch", ".", "transport"}},
	{"internal/line", 90, []string{"dispatch", "sim", ".", "transport"}},
	{"queue", 80, []string{"dispatch", "sim", ".", "internal/batch"}},
	{"dispatch", 80, []string{"sim", ".", "internal/batch"}},
	{"verdict", 50, []string{"transport", "internal/batch"}},
	{"internal/sight", 10, []string{"verdict", "transport", "internal/batch"}},
	{".", 60, []string{"transport", "internal/batch"}},
	{"transport", 60, nil},
	{"internal/wire", 40, []string{"transport", "internal/batch"}},
	{"internal/durable", 15, []string{"internal/journal", "internal/batch"}},
	{"internal/journal", 25, []string{"internal/batch"}},
	{"internal/batch", 40, []string{"cmd/paceline"}},
	{"quota", 30, []string{"verdict", "ratetest/service", "transport"}},
}
