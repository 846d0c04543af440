package mutate

// Target is a package to plant faults in.
type Target struct {
	Package string
	// Share is its part of a sample, in thousandths: so many that each file is met now and then.
	Share int
	// Then are packages whose tests may know better than its own, in the order in which they are asked: quick ones first.
	Then []string
}

// Targets are the core and what stands next to it, and what people write and read at the edges.
var Targets = []Target{
	{"mono", 10, []string{"window", "limit"}},
	{"backoff", 15, []string{"internal/guard", "dispatch"}},
	{"window", 50, nil},
	{"limit", 140, []string{"internal/guard", "sim/fleet", "dispatch", "sim", ".", "transport"}},
	{"throttle", 70, []string{"internal/strategy", "sim/scenario", "sim/fleet", "internal/guard", "dispatch"}},
	{"internal/strategy/slot", 20, []string{"internal/strategy", "sim/fleet"}},
	{"internal/guard", 70, []string{"dispatch", "sim", "transport"}},
	{"internal/health", 50, []string{"dispatch", ".", "transport"}},
	{"internal/line", 80, []string{"dispatch", "sim", ".", "transport"}},
	{"queue", 70, []string{"dispatch", "sim", ".", "internal/batch"}},
	{"dispatch", 80, []string{"sim", ".", "internal/batch"}},
	{"verdict", 50, []string{"transport", "internal/batch"}},
	{"internal/sight", 10, []string{"verdict", "transport", "internal/batch"}},
	{".", 60, []string{"transport", "internal/batch"}},
	{"transport", 60, nil},
	{"internal/wire", 40, []string{"transport", "internal/batch"}},
	{"internal/direct", 7, []string{"internal/batch"}},
	{"internal/durable", 15, []string{"internal/journal", "internal/batch"}},
	{"internal/journal", 25, []string{"internal/batch"}},
	{"internal/batch", 40, []string{"cmd/paceline"}},
	{"quota", 30, []string{"verdict", "ratetest/service", "transport"}},
	{"ratelike", 8, nil},
	{"internal/handed", 12, []string{"internal/batch", "cmd/paceline"}},
	{"internal/pick", 5, []string{"internal/batch"}},
	{"internal/filename", 5, []string{"internal/batch"}},
	{"internal/bearer", 6, []string{"internal/issuer", "internal/batch"}},
	{"internal/issuer", 6, []string{"internal/batch"}},
	{"internal/rate", 5, []string{"cmd/paceline"}},
	{"internal/columns", 3, []string{"internal/tables", "internal/screen"}},
	{"internal/tables", 3, []string{"cmd/paceline"}},
	{"internal/screen", 5, []string{"cmd/paceline"}},
}
