package archtest

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

// Border closes a folder of the module, with all below it, to imports from outside.
type Border struct {
	Folder string
	// Open are other folders whose files may import it, separated by spaces.
	Open string
	// Tests says that every test may import it.
	Tests bool
	// Why is the reason, and the way out.
	Why string
}

const (
	pure      = "cmp errors fmt iter maps math math/bits math/rand/v2 slices sort strings time"
	decisions = "limit/mono internal/core/ceiling ratetest/latency limit/window pool/backoff limit fairshare internal/core/queue internal/core/dispatch internal/rule internal/core/scheduler"
)

// Table says who may import whom. Names point down: what is below may not import what is above it. rule and limit share
// no code, because what proves is not what is proven. Modules of others stay at the edges: each is named here.
var Table = []Package{
	// Decisions.
	{Name: "limit/mono", Core: true, Std: "time math fmt"},
	{Name: "ratetest/latency", Core: true, Std: "time math math/rand/v2 fmt strings strconv errors slices bufio io"},
	{Name: "limit/window", Core: true, Ours: "limit/mono", Std: pure},
	{Name: "limit/window/shared", Ours: "limit/mono limit/window", Std: "sync"},
	{Name: "internal/core/histogram", Core: true, Std: "maps math math/bits slices time"},
	{Name: "pool/backoff", Core: true, Ours: "limit/mono", Std: pure},
	{Name: "limit", Core: true, Ours: "limit/mono limit/window", Std: pure + " encoding/binary"},
	{Name: "internal/core/ability", Core: true, Ours: "limit/mono limit", Std: "time"},
	{Name: "internal/core/ceiling", Core: true, Ours: "limit/mono", Std: pure},
	{Name: "fairshare", Core: true, Ours: "limit/mono limit limit/window", Std: pure + " encoding/binary hash/crc32"},
	{Name: "lab/strategy", Core: true, Ours: "limit/mono limit fairshare internal/text", Std: pure},
	{Name: "lab/strategy/formula", Core: true, Ours: "internal/text lab/strategy", Std: pure + " go/ast go/parser go/scanner go/token regexp strconv"},
	{Name: "internal/core/queue", Core: true, Ours: "limit/mono limit internal/core/histogram", Std: pure + " container/heap"},
	{Name: "internal/core/scheduler", Core: true, Ours: "limit/mono limit internal/core/ability", Std: pure},
	{Name: "internal/core/stack", Core: true, Ours: "limit/mono limit fairshare pool/backoff internal/core/ability", Std: pure + " encoding/binary"},
	{Name: "internal/core/keyring", Core: true, Ours: "limit/mono limit pool/backoff", Std: pure + " container/heap"},
	{Name: "internal/core/dispatch", Core: true, Ours: "limit/mono limit pool/backoff internal/core/queue internal/core/keyring internal/core/stack internal/core/histogram internal/core/scheduler internal/core/ability", Std: pure + " container/heap"},

	{Name: "observe", Core: true, Ours: "limit/mono limit internal/core/histogram", Std: "cmp hash/fnv slices strconv strings time unicode unicode/utf8"},

	{Name: "internal/core/backlog", Core: true, Ours: "limit/mono", Std: pure + " container/heap"},
	{Name: "internal/core/snooze", Core: true, Ours: "limit/mono limit", Std: pure + " container/heap"},
	{Name: "internal/core/node", Core: true, Ours: "limit/mono limit", Std: pure + " encoding/binary hash/crc32"},

	// What servers do, and virtual time.
	{Name: "internal/rule", Core: true, Ours: "limit/mono ratetest/latency", Std: pure},
	{Name: "lab/sim", Core: true, Ours: decisions, Std: pure},
	{Name: "lab/nodesim", Core: true, Ours: "limit/mono limit internal/core/node", Std: pure},
	{Name: "lab/sim/fleet", Core: true, Ours: "limit/mono ratetest/latency limit fairshare internal/rule lab/sim lab/strategy internal/core/histogram internal/core/node lab/nodesim internal/text", Std: pure + " encoding/json io regexp strconv"},
	{Name: "lab/sim/scenario", Ours: "lab/sim/fleet limit fairshare ratetest/latency internal/app/yamlfile lab/strategy lab/strategy/formula", Std: "any", Modules: "go.yaml.in/yaml/v3"},
	{Name: "lab/parallel", Std: "context runtime sync"},
	{Name: "lab/sim/compare", Ours: "lab/sim/fleet fairshare lab/parallel lab/strategy", Std: "any"},
	{Name: "limit/limittest", Ours: "limit/mono limit", Std: pure + " sync/atomic testing"},

	// Words on the wire.
	{Name: "tokens", Std: "any"},
	{Name: "tokens/tiktoken", Ours: "tokens", Std: "compress/flate embed encoding/binary io strings sync unicode unicode/utf8"},
	{Name: "provider", Std: pure + " bytes embed encoding/json net/http net/url regexp strconv sync unicode", Modules: "github.com/dunglas/httpsfv"},

	// What an attempt proves. It is arithmetic like the core, but quota's words need modules of others.
	{Name: "provider/classify", Ours: "limit internal/core/dispatch provider internal/text", Std: pure + " bytes context crypto/tls crypto/x509 net net/http syscall"},
	{Name: "internal/send/costs", Ours: "internal/text/rate limit provider provider/classify", Std: "container/list encoding/json fmt hash/maphash maps strings sync sync/atomic time"},

	// Text of strangers, and what is not for them.
	{Name: "internal/secret", Core: true, Std: pure + " bytes encoding/base64 encoding/json html net net/url unicode unicode/utf8"},
	{Name: "internal/text", Core: true, Std: pure + " io strconv unicode unicode/utf8"},
	{Name: "internal/text/rate", Ours: "limit/mono limit", Std: pure + " strconv sync"},
	{Name: "internal/app/yamlfile", Ours: "internal/text internal/text/rate", Std: pure + " bytes reflect encoding/json io strconv unicode", Modules: "go.yaml.in/yaml/v3"},
	{Name: "internal/app/explain", Ours: "provider internal/send/decode", Std: pure + " bufio bytes encoding/json io net/http net/textproto net/url regexp strconv unicode/utf16"},

	// The runtime: clock, locks, timers, goroutines.
	{Name: Root, Ours: "limit/mono limit observe internal/core/scheduler internal/text internal/core/ability", Std: pure + " context log/slog runtime sync sync/atomic"},
	{Name: "pool", Ours: "limit/mono limit observe pool/backoff internal/core/queue internal/core/dispatch internal/secret internal/text internal/core/ability", Std: pure + " context log/slog runtime sync"},
	{Name: "contrib/xrate", Ours: "paceline limit/mono limit internal/core/ability", Std: pure + " context"},

	{Name: "share", Ours: "observe limit/mono limit internal/core/node internal/text internal/boottime", Std: "context crypto/rand errors fmt log/slog math/rand/v2 os strings sync time"},
	{Name: "internal/app/sharestore", Ours: "limit/mono limit share internal/core/node internal/secret internal/text internal/text/rate", Std: "context crypto/sha256 encoding/binary encoding/hex errors fmt io log/slog net/url slices strings sync time weak"},
	{Name: "share/sharetest", Ours: "paceline internal/core/node limit share", Std: "any"},
	{Name: "internal/sqlitefile", Std: "any", Modules: "modernc.org/sqlite"},
	{Name: "share/sqlite", Ours: "share internal/boottime internal/sqlitefile", Std: "any", Modules: "modernc.org/sqlite"},
	{Name: "internal/pgaddress", Ours: "internal/secret", Std: "errors strings time", Modules: "github.com/jackc/pgx/v5"},
	{Name: "share/postgres", Ours: "internal/pgaddress share", Std: "any", Modules: "github.com/jackc/pgx/v5"},
	{Name: "share/redis", Ours: "internal/secret share", Std: "any", Modules: "github.com/redis/go-redis/v9"},

	{Name: "backlog", Ours: "paceline limit limit/mono internal/core/backlog internal/boottime", Std: pure + " context os sync sync/atomic"},
	{Name: "backlog/backlogtest", Ours: "backlog", Std: "any"},
	{Name: "backlog/postgres", Ours: "backlog internal/pgaddress", Std: "any", Modules: "github.com/jackc/pgx/v5"},
	{Name: "backlog/sqlite", Ours: "backlog internal/sqlitefile", Std: "any"},

	// Edges: HTTP, files, pictures.
	{Name: "transport", Ours: "internal/send/costs paceline observe limit/mono limit pool/backoff provider tokens provider/classify internal/send internal/core/keyring internal/core/stack internal/core/histogram internal/text internal/secret internal/send/decode internal/core/ability fairshare", Std: "any"},
	{Name: "internal/queued", Ours: "paceline observe limit/mono limit pool/backoff provider provider/classify internal/core/ability internal/core/snooze internal/core/stack", Std: "bytes cmp context errors fmt io maps math/rand/v2 net/http sync time"},
	{Name: "internal/web", Std: "embed"},
	{Name: "observe/dashboard", Ours: "observe internal/text internal/web", Std: "bytes cmp context crypto/sha256 embed encoding/hex encoding/json errors fmt math net/http net/netip slices strconv strings sync time"},
	{Name: "observe/prom", Ours: "observe", Std: "any", Modules: "github.com/prometheus/client_golang"},
	{Name: "ratetest", Ours: "limit/mono internal/core/ceiling internal/rule ratetest/latency ratetest/internal/host", Std: "any"},
	{Name: "ratetest/llm", Ours: "limit/mono internal/rule ratetest/latency ratetest/internal/host ratetest/internal/model", Std: "any"},
	{Name: "ratetest/service", Ours: "limit/mono internal/rule provider ratetest/latency ratetest/internal/host ratetest/internal/model", Std: "any"},
	{Name: "ratetest/internal/host", Ours: "limit/mono", Std: "any"},
	{Name: "ratetest/internal/model", Std: pure + " encoding/base64 encoding/binary encoding/json regexp regexp/syntax strconv unicode/utf8 bytes"},
	{Name: "internal/app/report", Ours: "internal/app/run internal/app/run/tally internal/app/run/format internal/app/run/output internal/text/rate internal/text internal/web", Std: "any"},
	{Name: "cmd/paceline", Ours: "any", Std: "any", Modules: "any"},
	{Name: "internal/send", Ours: "provider tokens", Std: "bufio bytes cmp context crypto/tls errors fmt io log net net/http net/http/httptrace net/textproto net/url slices strconv strings sync sync/atomic syscall time unicode/utf8"},
	{Name: "internal/send/outgoing", Std: "cmp context errors fmt net net/http net/url os slices strings", Modules: "golang.org/x/net/http/httpproxy"},
	{Name: "internal/send/decode", Std: "bufio bytes compress/flate compress/gzip compress/zlib errors fmt io net/http reflect strings sync/atomic unicode/utf8", Modules: "github.com/andybalholm/brotli github.com/klauspost/compress/zstd"},
	{Name: "internal/app/screen", Ours: "internal/text", Std: "cmp errors fmt io os slices strings sync time unicode", Modules: "golang.org/x/term golang.org/x/text"},
	{Name: "internal/app/cli", Ours: "internal/app/screen internal/secret internal/text", Std: "any", Modules: "github.com/spf13/cobra github.com/spf13/pflag"},
	{Name: "internal/app/cli/clitest", Ours: "internal/app/cli internal/app/screen", Std: "any", Modules: "github.com/spf13/cobra github.com/spf13/pflag"},
	{Name: "internal/app/run/input", Ours: "internal/text internal/secret", Std: "bufio bytes compress/gzip crypto/sha256 encoding/base64 encoding/binary encoding/json encoding/xml errors fmt io iter net/http net/url path/filepath regexp slices strconv strings unicode unicode/utf16 unicode/utf8 cmp maps", Modules: "mvdan.cc/sh/v3/syntax go.yaml.in/yaml/v3"},
	{Name: "internal/app/durable", Std: pure + " bufio bytes io os path/filepath runtime sync syscall crypto/sha256 encoding/base32 mime", Modules: "golang.org/x/sys"},
	{Name: "internal/boottime", Std: "bytes fmt hash/fnv os strings sync syscall time", Modules: "golang.org/x/sys"},
	{Name: "internal/app/journal", Ours: "limit internal/app/durable internal/boottime limit/mono fairshare internal/text transport", Std: "any"},
	{Name: "internal/app/journal/recalltest", Ours: "ratetest/latency ratetest ratetest/service internal/rule", Std: "net/http sync time"},
	{Name: "transport/record", Ours: "internal/app/durable internal/app/journal internal/boottime limit limit/mono transport", Std: "any"},
	{Name: "internal/app/auth", Ours: "limit/mono limit internal/secret pool/backoff", Std: "any", Modules: "golang.org/x/oauth2"},
	{Name: "internal/app/run/meter", Ours: "internal/app/run/input internal/text/rate limit provider tokens tokens/tiktoken", Std: "bytes cmp encoding/json errors fmt io net/http net/url slices strconv strings sync"},
	{Name: "internal/app/run/format", Ours: "internal/app/charge provider/classify internal/app/run/input internal/app/run/meter internal/secret internal/text/rate limit provider tokens internal/send", Std: "bytes cmp crypto/sha256 encoding/base64 encoding/hex encoding/json errors fmt io maps math net/http net/url regexp slices strconv strings sync time unicode/utf8 unsafe sync/atomic"},
	{Name: "internal/app/run/output", Ours: "internal/app/durable internal/app/journal internal/app/run/format internal/secret internal/sqlitefile internal/text", Std: "bufio bytes cmp crypto/sha256 database/sql encoding/base64 encoding/hex encoding/json errors fmt hash hash/crc64 io net/http os path/filepath reflect slices strconv strings sync sync/atomic syscall time context unicode encoding/binary", Modules: "github.com/itchyny/gojq github.com/parquet-go/parquet-go github.com/parquet-go/parquet-go/encoding/thrift github.com/parquet-go/parquet-go/format"},
	{Name: "internal/app/run/sending", Ours: "internal/core/ceiling internal/app/run/format internal/app/run/output internal/secret internal/send/decode internal/send/outgoing internal/text limit provider/classify internal/send", Std: "bytes context crypto/tls encoding/json errors fmt io math net net/http net/url os regexp slices strconv strings sync sync/atomic syscall time unicode/utf8"},
	{Name: "internal/app/run/tally", Ours: "internal/core/queue internal/app/run/format internal/app/run/meter internal/app/run/sending internal/core/ceiling internal/core/histogram limit pool tokens", Std: "cmp encoding/binary fmt net/http slices strconv sync time"},
	{Name: "internal/app/run/telling", Ours: "internal/app/run/format internal/app/run/sending internal/text limit pool provider", Std: "fmt maps math slices strings sync time"},
	{Name: "internal/app/work", Ours: "backlog internal/app/run internal/app/run/format internal/app/run/output internal/app/run/sending internal/text pool", Std: "bytes cmp context encoding/json errors fmt io net/url slices strings sync time"},
	{Name: "internal/app/run", Ours: "internal/core/ceiling internal/core/queue internal/send/costs fairshare internal/app/journal internal/app/run/format internal/app/run/input internal/app/run/output internal/app/run/sending internal/app/run/tally internal/app/run/telling internal/app/sharestore internal/boottime internal/core/keyring internal/secret internal/send/outgoing internal/text internal/text/rate limit limit/mono observe pool provider provider/classify tokens internal/app/run/meter internal/app/auth internal/send", Std: "any"},
	{Name: "internal/app/charge", Ours: "internal/text/rate provider provider/classify", Std: pure + " context encoding/json math/big strconv", Modules: "github.com/itchyny/gojq"},
	{Name: "internal/app/capture", Std: "any", Modules: "github.com/google/nftables github.com/google/nftables/binaryutil github.com/google/nftables/expr github.com/mdlayher/netlink github.com/miekg/dns golang.org/x/sys/unix"},
	{Name: "internal/app/forward", Ours: "internal/send/outgoing", Std: "any", Modules: "golang.org/x/net/proxy"},
	{Name: "internal/app/daemon", Ours: "internal/app/cli internal/app/durable", Std: "any", Modules: "golang.org/x/sys/unix"},
	{Name: "internal/app/keeper", Ours: "internal/app/capture internal/app/daemon internal/app/forward internal/app/launch internal/app/proxy internal/app/journal internal/text observe", Std: "any"},
	{Name: "internal/app/launch", Ours: "internal/app/capture internal/app/forward internal/app/durable", Std: "any", Modules: "golang.org/x/sys/unix"},
	{Name: "internal/app/permit", Ours: "internal/app/journal internal/app/proxy internal/boottime internal/core/stack internal/text internal/text/rate limit limit/mono observe paceline provider provider/classify", Std: "any"},
	{Name: "internal/app/viabatch", Ours: "internal/app/durable internal/app/run internal/app/run/format internal/send internal/text provider tokens", Std: "any"},
	{Name: "internal/app/proxy", Ours: "internal/core/dispatch internal/app/charge provider/classify internal/app/forward internal/app/jobs internal/app/run/sending paceline observe limit/mono pool/backoff limit provider tokens tokens/tiktoken transport internal/send/outgoing internal/text/rate internal/text internal/secret internal/app/sharestore fairshare internal/app/journal internal/boottime internal/app/daemon internal/send internal/send/costs", Std: "any", Modules: "golang.org/x/text/unicode/norm"},
	{Name: "internal/app/jobs", Ours: "internal/app/durable internal/app/run internal/app/run/format internal/app/run/sending internal/text", Std: "any"},
	{Name: "internal/app/proxy/config", Ours: "internal/app/charge internal/app/proxy internal/app/yamlfile internal/text internal/text/rate internal/secret pool/backoff provider tokens", Std: "any", Modules: "go.yaml.in/yaml/v3"},
	{Name: "internal/testkit/daemon", Std: "any"},
	{Name: "lab/chart", Ours: "internal/app/report internal/app/screen internal/web", Std: "any", Modules: "gonum.org/v1/plot"},
	{Name: "lab/bench", Ours: "any", Std: "any", Modules: "github.com/HdrHistogram/hdrhistogram-go"},
	{Name: "lab/eventlog", Ours: "limit/mono internal/rule", Std: pure + " bufio bytes encoding/csv encoding/json io strconv"},
	{Name: "lab/proxybench"},
	{Name: "lab/soak"},
	{Name: "lab/cmd/paceline-lab", Ours: "any", Std: "any", Modules: "github.com/spf13/cobra github.com/spf13/pflag"},
	{Name: "lab/targets", Ours: "limit ratetest/latency fairshare lab/parallel lab/strategy lab/sim/fleet lab/sim/compare internal/app/screen", Std: "any"},
	{Name: "lab/baselines"},
	{Name: "lab/laws"},

	// Help for the tests.
	{Name: "internal/testkit/browser", Ours: "internal/testkit/need", Std: "any", Modules: "github.com/chromedp/cdproto github.com/chromedp/chromedp"},
	{Name: "internal/testkit/coded", Std: "bytes compress/flate compress/gzip compress/zlib io net/http sync", Modules: "github.com/andybalholm/brotli github.com/klauspost/compress/zstd"},
	{Name: "internal/testkit/corpus", Ours: "provider", Std: "any"},
	{Name: "internal/testkit/frontend", Ours: "limit limit/mono observe", Std: "testing time"},
	{Name: "internal/testkit/overlay", Std: "any"},
	{Name: "tools/mutate", Ours: "internal/testkit/overlay", Std: "any"},
	{Name: "internal/testkit/fakeconn", Std: "bufio context errors fmt io net net/http sync time"},
	{Name: "internal/testkit/golden", Std: "any"},
	{Name: "internal/testkit/need", Std: "any", Modules: "golang.org/x/sys"},
	{Name: "internal/testkit/pages", Ours: "internal/testkit/need", Std: "any", Modules: "github.com/spf13/cobra mvdan.cc/sh/v3"},
	{Name: "internal/testkit/race", Std: "reflect slices testing"},
	{Name: "internal/testkit/tenants", Ours: "limit limit/mono internal/rule", Std: "any"},
	{Name: "internal/testkit/realserver", Ours: "limit internal/testkit/daemon internal/testkit/need", Std: "any"},
	{Name: "tools/check", Std: "any"},
	{Name: "tools/archtest", Std: "any"},
	{Name: "tools/entries", Std: "any"},
}

// Borders say who may import whom where the table has no say, in tests and nested modules.
var Borders = []Border{
	{Folder: "lab", Why: "the others are built and tested without the laboratory; move a test that drives the simulator to lab/laws"},
	{Folder: "contrib", Why: "an adapter depends on the library, never the reverse; move what needs both into contrib"},
	{Folder: "tools", Why: "tools look at the module from outside; move what is needed to internal/testkit"},
	{Folder: "cmd", Why: "a program is run and not imported; move what is needed to internal/app"},
	{Folder: "internal/testkit", Open: "lab tools", Tests: true,
		Why: "help for tests is not for users; move what is needed to a package of its own"},
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
