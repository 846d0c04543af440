package tidy

// Root is how the table calls the package in the module's root.
const Root = "paceline"

// Package is a row of the table: what one package may import outside its tests.
type Package struct {
	// Name is its folder below the module's root, or Root.
	Name string
	// Core says that it decides: arithmetic on a now it is given, without clock, lock, goroutine or channel.
	Core bool
	// Ours, Std and Modules are the packages of this module, the packages of the standard library, and the other
	// modules that it may import, separated by spaces. In Ours and Std, "any" allows all.
	Ours, Std, Modules string
}

const (
	pure      = "cmp errors fmt iter maps math math/bits math/rand/v2 slices sort strings time"
	decisions = "mono latency window backoff limit throttle queue dispatch rule internal/line"
)

// Table says who may import whom. Names point down: what is below may not import what is above it. rule and limit share
// no code, because what proves is not what is proven. Modules of others stay at the edges: each is named here.
var Table = []Package{
	// Decisions.
	{Name: "mono", Core: true, Std: "time math fmt"},
	{Name: "latency", Core: true, Std: "time math math/rand/v2 fmt strings strconv errors slices bufio io"},
	{Name: "window", Core: true, Ours: "mono", Std: pure},
	{Name: "internal/histogram", Core: true, Std: "maps math math/bits slices time"},
	{Name: "backoff", Core: true, Ours: "mono", Std: pure},
	{Name: "limit", Core: true, Ours: "mono window", Std: pure + " encoding/binary"},
	{Name: "internal/blind", Core: true, Std: "math"},
	{Name: "throttle", Core: true, Ours: "mono limit window internal/blind", Std: pure + " encoding/binary hash/crc32"},
	{Name: "internal/strategy/slot", Core: true, Ours: "mono limit throttle internal/blind", Std: pure},
	{Name: "internal/strategy", Core: true, Ours: "mono limit throttle internal/near internal/strategy/slot", Std: pure},
	{Name: "queue", Core: true, Ours: "mono limit", Std: pure + " container/heap"},
	{Name: "internal/line", Core: true, Ours: "mono limit", Std: pure},
	{Name: "internal/guard", Core: true, Ours: "mono limit throttle backoff", Std: pure},
	{Name: "internal/health", Core: true, Ours: "mono limit backoff internal/guard", Std: pure},
	{Name: "dispatch", Core: true, Ours: "mono limit backoff queue internal/guard internal/health internal/line", Std: pure + " container/heap"},

	{Name: "internal/ledger", Core: true, Ours: "mono limit", Std: pure + " encoding/binary hash/crc32"},

	// What servers do, and virtual time.
	{Name: "rule", Core: true, Ours: "mono latency", Std: pure},
	{Name: "sim", Core: true, Ours: decisions, Std: pure},
	{Name: "internal/ledger/ledgersim", Core: true, Ours: "mono limit rule sim internal/ledger", Std: pure},
	{Name: "sim/fleet", Core: true, Ours: "mono latency limit throttle rule sim internal/histogram internal/ledger internal/ledger/ledgersim", Std: pure + " encoding/json io"},
	{Name: "sim/scenario", Ours: "sim/fleet limit throttle latency internal/yamlfile internal/strategy", Std: "any", Modules: "go.yaml.in/yaml/v3"},
	{Name: "internal/cores", Std: "context runtime sync"},
	{Name: "sim/compare", Ours: "sim/fleet throttle internal/cores internal/strategy", Std: "any"},
	{Name: "limit/limittest", Ours: "mono limit rule sim", Std: pure + " testing"},

	// Words on the wire.
	{Name: "tokens", Std: "any"},
	{Name: "tokens/tiktoken", Ours: "tokens", Std: "compress/flate embed encoding/binary io strings sync unicode unicode/utf8"},
	{Name: "quota", Std: pure + " encoding/json net/http strconv", Modules: "github.com/dunglas/httpsfv"},

	// What an attempt proves. It is arithmetic like the core, but quota's words need modules of others.
	{Name: "verdict", Ours: "limit dispatch quota internal/sight", Std: pure + " bytes context crypto/tls net net/http"},

	// Text of strangers, and what is not for them.
	{Name: "internal/secret", Core: true, Std: pure + " encoding/base64 html net net/url unicode/utf8"},
	{Name: "internal/httptext", Core: true, Std: "net/url slices strings"},
	{Name: "internal/rate", Core: true, Ours: "mono limit", Std: pure + " strconv"},
	{Name: "internal/bearer", Core: true, Ours: "mono limit backoff", Std: pure + " bytes encoding/base64 encoding/json strconv"},
	{Name: "internal/bytesize", Core: true, Std: pure + " strconv"},
	{Name: "internal/near", Core: true, Std: "cmp slices strings"},
	{Name: "internal/yamlfile", Ours: "internal/near internal/rate", Std: pure + " bytes encoding/json io strconv unicode", Modules: "go.yaml.in/yaml/v3"},
	{Name: "internal/filename", Core: true, Std: pure + " crypto/sha256 encoding/base32 mime"},
	{Name: "internal/labels", Core: true, Std: "hash/fnv strconv strings unicode unicode/utf8"},
	{Name: "internal/spell", Core: true, Std: "fmt math slices strconv time"},
	{Name: "internal/wording", Ours: "quota internal/spell", Std: "fmt strings time"},
	{Name: "internal/shown", Core: true, Std: pure + " io unicode unicode/utf8"},
	{Name: "internal/pasted", Ours: "quota", Std: pure + " encoding/json net/http net/url regexp strconv unicode/utf16"},

	// The runtime: clock, locks, timers, goroutines.
	{Name: Root, Ours: "mono limit backoff queue dispatch internal/histogram internal/line internal/spell", Std: pure + " context log/slog runtime sync sync/atomic"},
	{Name: "internal/overdue", Std: "sync time"},
	{Name: "ratelike", Ours: "paceline mono limit", Std: pure + " context"},

	{Name: "share", Ours: "paceline mono limit internal/ledger internal/spell internal/uptime", Std: "context crypto/rand errors fmt log/slog math/rand/v2 os strings sync time"},
	{Name: "internal/shared", Ours: "mono limit share internal/ledger internal/secret internal/spell", Std: "context crypto/sha256 encoding/hex errors fmt io log/slog net/url slices strings sync time weak"},
	{Name: "share/sharetest", Ours: "share", Std: "any"},
	{Name: "share/sqlite", Ours: "share internal/uptime", Std: "any", Modules: "modernc.org/sqlite"},
	{Name: "share/postgres", Ours: "share", Std: "any", Modules: "github.com/jackc/pgx/v5"},
	{Name: "share/redis", Ours: "share", Std: "any", Modules: "github.com/redis/go-redis/v9"},

	// Edges: HTTP, files, pictures.
	{Name: "internal/sight", Ours: "limit", Std: "any"},
	{Name: "internal/bill", Ours: "quota tokens", Std: "bytes"},
	{Name: "transport", Ours: "paceline mono limit backoff quota tokens verdict internal/bill internal/guard internal/health internal/histogram internal/near internal/overdue internal/secret internal/sight internal/spell internal/wire internal/wording", Std: "any"},
	{Name: "page", Ours: "paceline internal/spell", Std: "bytes cmp context crypto/sha256 embed encoding/hex encoding/json errors fmt math net/http net/netip slices strconv strings sync time"},
	{Name: "metrics", Ours: "paceline internal/labels", Std: "any", Modules: "github.com/prometheus/client_golang"},
	{Name: "ratetest", Ours: "mono rule latency ratetest/internal/host", Std: "any"},
	{Name: "ratetest/llm", Ours: "mono rule latency ratetest/internal/host", Std: "any"},
	{Name: "ratetest/service", Ours: "mono rule quota latency ratetest/internal/host", Std: "any"},
	{Name: "ratetest/internal/host", Std: "any"},
	{Name: "cmd/paceline", Ours: "any", Std: "any", Modules: "any"},
	{Name: "internal/wire", Std: "context crypto/tls errors fmt io net net/http net/http/httptrace sync sync/atomic time"},
	{Name: "internal/direct", Ours: "internal/httptext", Std: "bufio cmp compress/gzip context errors fmt io net net/http net/url os slices strconv strings sync syscall time"},
	{Name: "internal/columns", Std: "strings unicode", Modules: "golang.org/x/text"},
	{Name: "internal/tables", Ours: "internal/columns", Std: "io strings"},
	{Name: "internal/screen", Ours: "internal/shown internal/columns internal/tables", Std: "cmp fmt io os slices strings sync time", Modules: "golang.org/x/term"},
	{Name: "internal/strict", Std: "bufio bytes encoding/json errors fmt io strconv strings unicode/utf8"},
	{Name: "internal/handed", Ours: "internal/near internal/strict", Std: "bufio bytes compress/gzip crypto/sha256 encoding/base64 encoding/binary encoding/json encoding/xml errors fmt io iter net/http net/url path/filepath regexp slices strconv strings unicode/utf16 unicode/utf8", Modules: "mvdan.cc/sh/v3/syntax"},
	{Name: "internal/durable", Std: "bufio bytes errors fmt io os path/filepath runtime sync syscall", Modules: "golang.org/x/sys"},
	{Name: "internal/uptime", Std: "os strings sync time", Modules: "golang.org/x/sys"},
	{Name: "internal/journal", Ours: "limit internal/durable internal/uptime", Std: "any"},
	{Name: "internal/recall", Ours: "mono limit throttle internal/journal internal/spell", Std: "fmt sync time"},
	{Name: "internal/recall/recalltest", Ours: "latency ratetest ratetest/service rule", Std: "net/http sync time"},
	{Name: "internal/issuer", Ours: "mono limit internal/bearer", Std: "any", Modules: "golang.org/x/oauth2"},
	{Name: "internal/batch", Ours: "paceline mono limit throttle queue dispatch backoff tokens tokens/tiktoken quota verdict internal/sight internal/wire internal/direct internal/httptext internal/handed internal/strict internal/durable internal/filename internal/journal internal/recall internal/uptime internal/secret internal/shared internal/bearer internal/bill internal/issuer internal/shown internal/spell internal/histogram internal/rate rule", Std: "any"},
	{Name: "internal/proxy", Ours: "paceline mono backoff limit quota tokens tokens/tiktoken transport internal/httptext internal/rate internal/near internal/overdue internal/secret internal/shared internal/shown throttle internal/journal internal/recall internal/uptime", Std: "any"},
	{Name: "internal/proxy/configfile", Ours: "internal/proxy internal/yamlfile internal/bytesize internal/rate internal/near internal/secret quota tokens", Std: "any", Modules: "go.yaml.in/yaml/v3"},
	{Name: "internal/daemon", Std: "any"},
	{Name: "internal/pick", Std: "context errors fmt strings time unicode", Modules: "github.com/itchyny/gojq"},
	{Name: "internal/chart", Std: "any", Modules: "gonum.org/v1/plot codeberg.org/go-fonts/liberation golang.org/x/image"},
	{Name: "internal/live", Ours: "paceline mono limit throttle quota verdict internal/strategy ratetest sim/fleet", Std: "any"},
	{Name: "internal/bench", Ours: "any", Std: "any", Modules: "github.com/HdrHistogram/hdrhistogram-go"},
	{Name: "internal/proxybench", Ours: "mono rule internal/daemon internal/tables", Std: "any"},
	{Name: "internal/aims", Ours: "limit latency throttle internal/cores internal/strategy sim/fleet sim/compare internal/tables", Std: "any"},
	{Name: "internal/published", Ours: "mono latency limit throttle rule window sim sim/fleet internal/strategy internal/bench internal/tables", Std: pure + " context encoding/json io math/rand/v2 unicode/utf8"},

	// Help for the tests.
	{Name: "internal/browser", Ours: "internal/need", Std: "any"},
	{Name: "internal/corpus", Ours: "quota", Std: "any"},
	{Name: "internal/doors"},
	{Name: "internal/mutate", Std: "any"},
	{Name: "internal/farend", Std: "bufio context fmt io net net/http sync"},
	{Name: "internal/golden", Std: "any"},
	{Name: "internal/need", Std: "any"},
	{Name: "internal/race"},
	{Name: "internal/strange", Ours: "limit mono", Std: "fmt math/rand/v2 strings time"},
	{Name: "internal/realserver", Ours: "limit internal/daemon internal/need", Std: "any"},
	{Name: "internal/tidy", Std: "any"},
}

// ban is a name of the standard library that no core package may use.
type ban struct {
	why, instead string
}

const (
	reads  = "a decision is arithmetic on the now it is given"
	sleeps = "a decision answers with an instant; its driver waits"
	prints = "a decision has no output"
)

// banned is what core packages may not use of packages they may import, by import path and name.
var banned = map[string]map[string]ban{
	"time": {
		"Now":       {reads, "take now mono.Time as an argument"},
		"Since":     {reads, "use now.Sub(then) on mono.Time"},
		"Until":     {reads, "use then.Sub(now) on mono.Time"},
		"Sleep":     {sleeps, "return the instant at which to ask again"},
		"After":     {sleeps, "return the instant at which to ask again"},
		"AfterFunc": {sleeps, "return the instant at which to ask again"},
		"Tick":      {sleeps, "return the instant at which to ask again"},
		"NewTimer":  {sleeps, "return the instant at which to ask again"},
		"NewTicker": {sleeps, "return the instant at which to ask again"},
		"Timer":     {sleeps, "return the instant at which to ask again"},
		"Ticker":    {sleeps, "return the instant at which to ask again"},
	},
	"fmt": {
		"Print":   {prints, "return a value or an error"},
		"Printf":  {prints, "return a value or an error"},
		"Println": {prints, "return a value or an error"},
	},
}

// allowed is all that core packages may use of a package whose other names draw from a source that no seed replays.
var allowed = map[string]string{
	"math/rand":    "New NewSource NewZipf Rand Source Source64 Zipf",
	"math/rand/v2": "New NewPCG NewChaCha8 NewZipf Rand Source PCG ChaCha8 Zipf",
}

// owned are packages that nothing in the core may import, with what to do instead. The table does not allow them either;
// these have the better advice.
var owned = map[string]string{
	"sync":        "leave locking to the runtime: a decision belongs to one driver",
	"sync/atomic": "leave sharing to the runtime: a decision belongs to one driver",
	"context":     "take deadlines as mono.Time; the runtime knows of cancellation",
	"os":          "take what it needs as an argument or an io.Reader",
	"runtime":     "leave the machine to the runtime package",
}
