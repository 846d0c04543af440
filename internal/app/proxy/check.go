package proxy

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/send"
	"github.com/paceline-go/paceline/internal/send/outgoing"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
)

// Defaults of a Config.
const (
	DefaultListen  = "127.0.0.1:7878"
	DefaultAdmin   = "127.0.0.1:7879"
	DefaultMaxWait = time.Minute

	// Off as Admin means no admin listener.
	Off = "off"
)

// Checked returns the Config with its defaults filled in, or a *ConfigError.
func (c Config) Checked() (Config, error) {
	c.Listen, c.Admin = cmp.Or(c.Listen, DefaultListen), cmp.Or(c.Admin, DefaultAdmin)
	c.MaxWait = cmp.Or(c.MaxWait, DefaultMaxWait)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Access == nil {
		c.Access = slog.New(slog.DiscardHandler)
	}
	c.Bounds.fill()
	var err error
	if c.proxies, err = outgoing.FromEnvironment(); err != nil {
		return c, err
	}
	for _, check := range []func() error{c.checkListen, c.checkAdmin, c.checkForward, c.checkMetrics, c.Bounds.check, c.Clients.check} {
		if err := check(); err != nil {
			return c, err
		}
	}
	if c.Grace < 0 {
		return c, wrong("Grace", "%v, expected 0s or more", c.Grace)
	}
	if len(c.Upstreams) == 0 {
		return c, wrong("Upstreams", "none, expected one at least")
	}
	c.Upstreams = slices.Clone(c.Upstreams)
	for i := range c.Upstreams {
		if err := c.Upstreams[i].check(&c); err != nil {
			err.Field = fmt.Sprintf("Upstreams[%d]%s", i, err.Field)
			return c, err
		}
	}
	if err := cmp.Or(c.checkReach(), c.checkShare()); err != nil {
		return c, err
	}
	if err := cmp.Or(c.checkBatches(), c.checkNames()); err != nil {
		return c, err
	}
	if err := c.checkNumbers(); err != nil {
		return c, err
	}
	return c, c.checkApart()
}

func wrong(field, format string, args ...any) *ConfigError {
	return &ConfigError{Field: field, Err: fmt.Errorf(format, args...)}
}

// HasKeys reports whether clients have keys for the proxy.
func (c *Clients) HasKeys() bool {
	return slices.ContainsFunc(c.List, func(c Client) bool { return len(c.Keys) > 0 })
}

func (c *Config) checkListen() error {
	host, _, err := net.SplitHostPort(c.Listen)
	switch {
	case err != nil:
		return wrong("Listen", "%q, expected HOST:PORT such as %s; port 0 is any free one", c.Listen, DefaultListen)
	case !isLoopback(host) && !c.Open && !c.Clients.HasKeys():
		return wrong("Listen",
			"%s can be reached from other machines, and whoever reaches it would send with your limits and your keys: "+
				"expected clients with keys, or that it is said to be open, or an address such as %s", c.Listen, DefaultListen)
	}
	return nil
}

func (c *Config) checkAdmin() error {
	if c.Admin == Off {
		return nil
	}
	host, port, err := net.SplitHostPort(c.Admin)
	switch {
	case err != nil:
		return wrong("Admin", "%q, expected HOST:PORT such as %s, or %s", c.Admin, DefaultAdmin, Off)
	case !isLoopback(host):
		return wrong("Admin", "%s can be reached from other machines; expected an address of this one, such as %s (others "+
			"reach it through ssh -L)", c.Admin, DefaultAdmin)
	case port != "0" && c.Admin == c.Listen:
		return wrong("Admin", "%s is where clients connect; expected another port, or %s", c.Admin, Off)
	}
	return nil
}

// isLoopback reports whether only this machine can connect to a host.
func isLoopback(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}

func (b *Bounds) fill() {
	b.Header = cmp.Or(b.Header, 64<<10)
	b.Body = cmp.Or(b.Body, 1<<30)
	b.Kept = cmp.Or(b.Kept, 32<<20)
	b.KeptInAll = cmp.Or(b.KeptInAll, 512<<20)
	b.Frozen = cmp.Or(b.Frozen, 64<<20)
	b.Connections = cmp.Or(b.Connections, 16384)
	b.HeaderTimeout = cmp.Or(b.HeaderTimeout, 10*time.Second)
	b.IdleTimeout = cmp.Or(b.IdleTimeout, 2*time.Minute)
	b.Stall = cmp.Or(b.Stall, time.Minute)
}

func (b *Bounds) check() error {
	for _, f := range []struct {
		name string
		n    int64
	}{
		{"Header", int64(b.Header)}, {"Kept", b.Kept}, {"KeptInAll", b.KeptInAll}, {"Frozen", b.Frozen},
		{"Connections", int64(b.Connections)},
		{"HeaderTimeout", int64(b.HeaderTimeout)}, {"IdleTimeout", int64(b.IdleTimeout)}, {"Stall", int64(b.Stall)},
	} {
		if f.n < 0 {
			return wrong("Bounds."+f.name, "%d is negative", f.n)
		}
	}
	return nil
}

func (c *Clients) check() error {
	if c.Header != "" && !send.IsFieldName(c.Header) {
		return wrong("Clients.Header", "%q is no name of a header field", c.Header)
	}
	if c.Most < 0 {
		return wrong("Clients.Most", "%d is negative", c.Most)
	}
	names, keys := map[string]bool{}, map[KeyHash]string{}
	for i := range c.List {
		k, at := &c.List[i], fmt.Sprintf("Clients.List[%d]", i)
		switch {
		case k.Name == "":
			return wrong(at+".Name", "it is empty, expected what the client is called")
		case names[k.Name]:
			return wrong(at+".Name", "there are two clients %q", k.Name)
		}
		names[k.Name] = true
		for j, h := range k.Keys {
			if who, is := keys[h]; is {
				return wrong(fmt.Sprintf("%s.Keys[%d]", at, j), "the same key is %s's", who)
			}
			keys[h] = k.Name
		}
		if err := k.check(at); err != nil {
			return err
		}
	}
	return c.Default.check("Clients.Default")
}

func (k *Client) check(at string) error {
	switch {
	case !(k.Weight >= 0 && k.Weight <= 1e6):
		return wrong(at+".Weight", "%v, expected above 0 and up to a million", k.Weight)
	case !(k.Reserve >= 0 && k.Reserve <= 1):
		return wrong(at+".Reserve", "%v, expected 0 to 1", k.Reserve)
	case slices.Contains(k.Models, ""):
		return wrong(at+".Models", "one is empty, expected the names of models, such as gpt-4o or gpt-4o*")
	case k.InFlight < 0:
		return wrong(at+".InFlight", "%d is negative", k.InFlight)
	case k.HeadStart < 0:
		return wrong(at+".HeadStart", "%v, expected 0s or more", k.HeadStart)
	case k.MaxWaiting < 0:
		return wrong(at+".MaxWaiting", "%d is negative", k.MaxWaiting)
	}
	return checkRates(at+".Limits", k.Limits)
}

func checkRates(at string, all []rate.Limit) error {
	for i, l := range all {
		if l.Model != "" || l.EachModel {
			return wrong(fmt.Sprintf("%s[%d]", at, i), "it is of models; expected a limit of all that is asked for here")
		}
		if err := checkRate(l, limit.Arrivals{}); err != nil {
			return wrong(fmt.Sprintf("%s[%d]", at, i), "%w", err)
		}
	}
	return nil
}

// checkReach finds upstreams of clients that there are not.
func (c *Config) checkReach() error {
	var names []string
	for i := range c.Upstreams {
		names = append(names, c.Upstreams[i].Name)
	}
	all := append(slices.Clone(c.Clients.List), c.Clients.Default)
	for i := range all {
		at := "Clients.Default.Upstreams"
		if i < len(c.Clients.List) {
			at = fmt.Sprintf("Clients.List[%d].Upstreams", i)
		}
		if all[i].Upstreams != nil && len(all[i].Upstreams) == 0 {
			return wrong(at, "none, expected one of %s, or no upstreams, for all", strings.Join(names, ", "))
		}
		for _, name := range all[i].Upstreams {
			if !slices.Contains(names, name) {
				return wrong(at, "there is no upstream %q, expected one of %s", name, strings.Join(names, ", "))
			}
		}
	}
	return nil
}

// check fills in the defaults of u. The Field of its error begins with a dot.
func (u *Upstream) check(c *Config) *ConfigError {
	if err := u.checkTargets(c); err != nil {
		return err
	}
	switch {
	case u.To == nil:
		return wrong(".To", "it is empty, expected the URL of a server, such as https://api.example.com, or targets")
	case u.To.Scheme != "http" && u.To.Scheme != "https" || u.To.Host == "" || u.To.Opaque != "":
		return wrong(".To", "%q, expected http or https and a host, such as https://api.example.com",
			secret.SanitizeAddress(u.To.String()))
	case u.To.User != nil:
		return wrong(".To", "%q has a user in it; expected a header field instead", secret.SanitizeAddress(u.To.String()))
	case u.To.RawQuery != "" || u.To.Fragment != "" || u.To.ForceQuery:
		return wrong(".To", "it has a query or a fragment; expected none; parameters are set as such")
	case u.H2C && u.To.Scheme != "http":
		return wrong(".H2C", "%s has TLS, where HTTP/2 is agreed on anyway", secret.SanitizeAddress(u.To.String()))
	case u.To.Host == c.Listen:
		return wrong(".To", "%s is this proxy itself", secret.SanitizeAddress(u.To.String()))
	}
	u.Name = cmp.Or(u.Name, u.To.Host)
	if err := u.checkRoute(); err != nil {
		return err
	}
	if err := cmp.Or(u.checkUse(c), u.checkLimits()); err != nil {
		return err
	}
	if err := u.checkCharges(c); err != nil {
		return err
	}
	if err := cmp.Or(u.checkFirst(), u.checkKeys()); err != nil {
		return err
	}
	if err := u.checkPrices(); err != nil {
		return err
	}
	if err := u.Batches.check(u); err != nil {
		return err
	}
	if u.Attempts < 0 {
		return wrong(".Attempts", "%d is negative", u.Attempts)
	}
	if err := u.Backoff.Check(); err != nil {
		return wrong(".Backoff", "%w", err)
	}
	u.AnswerTimeout = cmp.Or(u.AnswerTimeout, 10*time.Minute)
	u.ConnectTimeout = cmp.Or(u.ConnectTimeout, 10*time.Second)
	if u.ConnectTimeout < 0 {
		return wrong(".ConnectTimeout", "%v, expected above 0s", u.ConnectTimeout)
	}
	return nil
}

func (u *Upstream) checkRoute() *ConfigError {
	for _, r := range u.Path {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/-._~", r)) {
			return wrong(".Path", "%q has %q in it; expected letters, digits and -._~ between slashes", u.Path, r)
		}
	}
	if u.Path != "" && (u.Path[0] != '/' || strings.Contains(u.Path, "//") || climbs(u.Path)) {
		return wrong(".Path", "%q, expected it to begin with a slash, and no empty or dotted segment", u.Path)
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	u.Host = strings.ToLower(strings.TrimSuffix(u.Host, "."))
	if v, err := url.Parse("//" + u.Host); u.Host != "" &&
		(err != nil || v.Host != u.Host || v.Port() != "" || strings.HasSuffix(u.Host, ":")) {
		return wrong(".Host", "%q, expected a host name without a port", u.Host)
	}
	if strings.ContainsFunc(u.Host, func(r rune) bool { return r > unicode.MaxASCII }) { // no request could match it
		return wrong(".Host", "%q, expected a host name without a port, as clients send it: in ASCII, xn--… where it has "+
			"other letters", u.Host)
	}
	return nil
}

func (u *Upstream) checkLimits() *ConfigError {
	if u.Preset != "" {
		if _, ok := provider.LookupPreset(u.Preset); !ok {
			var names []string
			for _, p := range provider.Presets() {
				names = append(names, p.Name)
			}
			return wrong(".Preset", "no limits are published as %q%s", u.Preset, text.DidYouMean(u.Preset, names))
		}
		if who, _ := provider.Publisher(u.Preset); u.PerSecond && !who.PerSecond {
			return wrong(".PerSecond", "%s does not say that limits per minute also hold per second", who.Title)
		}
	} else if u.PerSecond {
		return wrong(".PerSecond", "there is no Preset")
	}
	if u.Strangers && !u.Auto {
		return wrong(".Strangers", "a share is found out, expected the limit auto beside it")
	}
	if u.InFlight < 0 {
		return wrong(".InFlight", "%d is negative", u.InFlight)
	}
	u.Limits = slices.Clone(u.Limits)
	for i := range u.Limits {
		l, at := &u.Limits[i], fmt.Sprintf(".Limits[%d]", i)
		if l.Scope == "" {
			l.Scope = provider.Key
			if l.EachModel || l.Model != "" {
				l.Scope = provider.Model
			}
		}
		l.Only = cmp.Or(l.Only, l.Model)
		switch {
		case !slices.Contains([]provider.Scope{provider.Key, provider.IP, provider.Model, provider.Resource, provider.Route}, l.Scope):
			return wrong(at+".Scope", "%q, expected %s, %s, %s, %s or %s", l.Scope, provider.Key, provider.IP, provider.Model,
				provider.Resource, provider.Route)
		case l.Only != "" && l.Scope != provider.Model && l.Scope != provider.Resource && l.Scope != provider.Route:
			return wrong(at+".Only", "%q, and the limit is neither of models, nor of resources or routes", l.Only)
		}
		if err := checkRate(l.Limit, u.Arrivals); err != nil {
			return wrong(at, "%w", err)
		}
	}
	return nil
}

func checkRate(l rate.Limit, a limit.Arrivals) error {
	_, err := l.Limiter(a)
	return err
}

func (u *Upstream) checkKeys() *ConfigError {
	names := map[string]bool{}
	values := map[Secret]string{}
	for i, k := range u.Keys {
		at := fmt.Sprintf(".Keys[%d]", i)
		switch {
		case k.Name == "":
			return wrong(at+".Name", "it is empty, expected what the key is called")
		case names[k.Name]:
			return wrong(at+".Name", "there are two keys %q", k.Name)
		case k.Secret == "":
			return wrong(at+".Secret", "it is empty")
		case !send.IsFieldValue(string(k.Secret)) || strings.TrimSpace(string(k.Secret)) != string(k.Secret):
			return wrong(at+".Secret",
				"the value of %s has white space around it or a control character in it (a line break?)", k.Name)
		case values[k.Secret] != "":
			return wrong(at+".Secret", "%s and %s have the same value: as two keys they would be allowed twice the limit",
				values[k.Secret], k.Name)
		}
		names[k.Name], values[k.Secret] = true, k.Name
		if err := checkRates(at+".Limits", k.Limits); err != nil {
			return err.(*ConfigError)
		}
	}
	uses := false
	for _, set := range []struct {
		at  string
		all []Field
	}{{".Header", u.Header}, {".Query", u.Query}} {
		for i, f := range set.all {
			at := fmt.Sprintf("%s[%d]", set.at, i)
			switch {
			case set.at == ".Header" && !send.IsFieldName(f.Name):
				return wrong(at, "%q is no name of a header field", f.Name)
			case set.at == ".Header" && framing[http.CanonicalHeaderKey(f.Name)]:
				return wrong(at, "%s is set by the proxy itself", http.CanonicalHeaderKey(f.Name))
			case f.Name == "":
				return wrong(at, "its name is empty")
			case !send.IsFieldValue(string(f.Value)):
				return wrong(at, "the value of %s has a control character", f.Name)
			}
			if word, meant := f.Slip(); word != "" {
				return wrong(at, "the value of %s has %s in it, expected %s", f.Name, word, meant)
			}
			if f.usesKey() {
				uses = true
			}
		}
	}
	if err := u.checkNonce(); err != nil {
		return err
	}
	switch {
	case u.KeyIn != nil && u.hasKeys():
		return wrong(".KeyIn", "the requests go with keys of the proxy, so a client's own key counts nowhere; expected keys, or "+
			"the place of clients' keys, but not both")
	case uses && len(u.Keys) == 0 && len(u.Targets) == 0:
		return wrong(".Keys", "none, and a header field or parameter has %s in it", keyWord)
	case !uses && len(u.Keys) > 0:
		return wrong(".Header",
			"no header field or parameter has %s in it, so no request would have a key; expected such as Authorization: "+
				"Bearer %s", keyWord, keyWord)
	}
	return nil
}

// checkNonce finds numbers that cannot rise at the server, and settings of numbers that nothing has.
func (u *Upstream) checkNonce() *ConfigError {
	none := !slices.ContainsFunc(u.Servers(), (*Upstream).Numbers)
	for _, f := range []struct {
		name string
		set  time.Duration
	}{{".NonceGap", u.NonceGap}, {".NonceUnit", u.NonceUnit}} {
		switch {
		case f.set < 0:
			return wrong(f.name, "%v is negative", f.set)
		case f.set > 0 && none:
			return wrong(f.name, "%v, and no header field or parameter has %s in it", f.set, nonceWord)
		}
	}
	if u.Numbers() && !u.hasKeys() {
		return wrong(".Keys", "none, and a header field or parameter has %s in it, which rises with each key", nonceWord)
	}
	return nil
}

// checkNumbers finds a key with numbers at one server twice. Each upstream and target orders its own
// requests alone, so the numbers of both could not arrive in order.
func (c *Config) checkNumbers() error {
	type place struct {
		host   string
		secret Secret
	}
	at := map[place]string{}
	for i := range c.Upstreams {
		for _, u := range c.Upstreams[i].Servers() {
			if !u.Numbers() {
				continue
			}
			for _, k := range u.Keys {
				here := place{strings.ToLower(u.To.Host), k.Secret}
				if who := at[here]; who != "" {
					return wrong(fmt.Sprintf("Upstreams[%d].Keys", i), "the key %s of %s is one of %s, too, and the numbers of both "+
						"cannot arrive in order (%s); expected one of the two", k.Name, u.Name, who, nonceWord)
				}
				at[here] = u.Name
			}
		}
	}
	return nil
}

// framing are the fields for the transfer and the destination of a message.
var framing = map[string]bool{
	"Connection": true, "Content-Length": true, "Host": true, "Keep-Alive": true, "Proxy-Connection": true, "Te": true,
	"Trailer":           true,
	"Transfer-Encoding": true, "Upgrade": true, "Expect": true,
}

// checkApart finds two upstreams for one path.
func (c *Config) checkApart() error {
	at, names := map[string]int{}, map[string]bool{}
	for i, u := range c.Upstreams {
		place := u.Host + u.Path
		if j, is := at[place]; is {
			field := "Path"
			if u.Path == "" && u.Host != "" {
				field = "Host"
			}
			return wrong(fmt.Sprintf("Upstreams[%d].%s", i, field),
				"%q is that of Upstreams[%d], %s, too: nobody knows where a request goes; expected another Path or Host",
				cmp.Or(place, "/"), j, c.Upstreams[j].Name)
		}
		at[place] = i
		if names[u.Name] {
			return wrong(fmt.Sprintf("Upstreams[%d].Name", i), "there are two upstreams %q", u.Name)
		}
		names[u.Name] = true
	}
	return nil
}

// checkUse finds a part that is none, and limits of which no part can be used.
func (u *Upstream) checkUse(c *Config) *ConfigError {
	at, value := ".Use", fmt.Sprint(u.Use)
	if u.Ramp != 0 {
		at, value = ".Ramp", u.Ramp.String()
	}
	switch {
	case !(u.Use >= 0 && u.Use <= 1):
		return wrong(".Use", "%v, expected above 0 and up to 1", u.Use)
	case u.Ramp < 0:
		return wrong(".Ramp", "%v, expected 0s or more", u.Ramp)
	case (u.Use == 0 || u.Use == 1) && u.Ramp == 0:
		return nil
	case u.Auto:
		return wrong(at, "%s with the limit auto, which finds its own part; expected limits that are known", value)
	}
	return nil
}
