package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/jobs"
	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/app/proxy/config"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
)

func newProxyCheck() *cobra.Command {
	var route string
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Say in words what paceline proxy --config FILE would do",
		Long: "Read a configuration, the files that it names and the variables of the environment that it names, and say " +
			"in words what paceline proxy\n" +
			"would do: where it listens, who may come, where requests go, what limits hold, and what a client sees. No secret " +
			"is shown. Nothing is sent,\n" +
			"and nothing listens.\n\nIf something is wrong, the errors of all fields are told, each with its line and column; what does not " +
			"go together is\ntold one at a time. The exit code is 4 then.",
		Example: "  paceline proxy --init paceline.yaml\n  paceline proxy check paceline.yaml",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("want one configuration file; paceline proxy --init paceline.yaml writes one")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := loadProxy(args[0], os.LookupEnv)
			if err != nil {
				return err
			}
			if route != "" {
				return checkRoute(cmd.OutOrStdout(), &f.Config, route)
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), screen.Fit(text.SanitizeLines(proxyInWords(args[0], f)), screen.TableWidth))
			return err
		},
	}
	c.Flags().StringVar(&route, "route", "",
		"a request to the proxy, 'GET /path?x=1': print what it costs, and why, instead")
	return c
}

// checkRoute prints what a request costs at its upstream, by which charge, and in which limits it counts.
func checkRoute(out io.Writer, c *proxy.Config, route string) error {
	r, err := routeOf(route)
	if err != nil {
		return cli.Usage(err)
	}
	u, at := c.Route(r)
	if u == nil {
		return cli.Usage(fmt.Errorf("--route %q: no upstream of the configuration has this path", route))
	}
	r.URL = at
	charge, resource, _ := u.Charge(r)
	v := chargeOf(r, charge, resource)
	v.Route = r.Method + " " + at.RequestURI()
	var own publishedRow
	for _, l := range limitsOf(u) {
		unit := l.Unit.String()
		byCost := l.Unit == limit.Weight || l.Unit == limit.Orders
		if l.Covers(resource) && (!byCost || v.Cost[unit] > 0 || v.Body[unit] != "") {
			own.Limits = append(own.Limits, rateInWords(l.Limit)+", of "+whoseInWords(l))
		}
	}
	if own.Preset = "the configuration"; own.Limits != nil {
		v.Limits = append(v.Limits, own)
	}
	for _, x := range u.Servers() {
		if preset, ok := provider.LookupPreset(x.Preset); ok {
			v.counts([]provider.Preset{preset}, time.Now())
		}
	}
	if v.First = u.GoesFirst(r); !v.First {
		v.Leaves = max(u.FirstFree, 0)
	}
	return v.write(out, u.Name)
}

// loadProxy reads a configuration. Its error has an exit code.
func loadProxy(name string, env func(string) (string, bool)) (config.File, error) {
	f, err := config.Load(name, env)
	switch {
	case errors.Is(err, fs.ErrNotExist) && errors.As(err, new(*fs.PathError)) && !errors.As(err, new(*config.Error)):
		return f, cli.Exit(cli.ExitConfig, cli.NoSuchFile(name,
			cli.Expecting(err, "a configuration of the proxy, which paceline proxy --init FILE writes")))
	case err != nil:
		return f, cli.Exit(cli.ExitConfig, err)
	}
	f.Config, err = f.Config.Checked() // Load has checked it; this fills in the defaults
	return f, err
}

// defaultWaiting is the default of proxy.Client.MaxWaiting.
const defaultWaiting = 10000

// proxyWords collects the text that proxy check prints.
type proxyWords struct {
	strings.Builder
	file config.File
}

// proxyInWords describes a configuration.
func proxyInWords(name string, f config.File) string {
	w := &proxyWords{file: f}
	c := &f.Config
	w.line("%s is right. With it, paceline proxy", name)
	w.line("")
	w.listens(c)
	w.line("")
	w.comes(c)
	w.line("")
	for i := range c.Upstreams {
		w.upstream(c, &c.Upstreams[i])
		w.line("")
	}
	w.sees(c)
	return w.String()
}

func (w *proxyWords) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// scheme is the scheme of the URLs that clients use to reach the proxy.
func scheme(c *proxy.Config) string {
	if c.TLS != nil {
		return "https"
	}
	return "http"
}

func (w *proxyWords) listens(c *proxy.Config) {
	who := "this machine alone can reach it"
	if host, _, err := net.SplitHostPort(c.Listen); err == nil && !isLoopback(host) {
		who = "other machines can reach it"
	}
	w.line("listens at %s://%s; %s", scheme(c), c.Listen, who)
	switch {
	case c.TLS != nil && c.TLS.ClientCAs != nil:
		w.line("  with TLS; clients need a certificate of your authorities")
	case c.TLS != nil:
		w.line("  with TLS")
	}
	if f := c.Forward; f.Listen != "" {
		others := "no other host"
		if f.Tunnels == proxy.TunnelsPublic {
			others = "other hosts of the public network, at port 443, unread"
		}
		w.line("  is a forward proxy at http://%s, whose programs trust %s; it reaches the hosts below, and %s", f.Listen,
			f.Bundle, others)
	}
	b := c.Bounds
	body := "of any length"
	if b.Body > 0 {
		body = "up to " + text.Bytes(b.Body)
	}
	w.line("  headers up to %s, bodies %s (of which %s is kept to send it again, %s in all), %s for what counts of idle "+
		"keys, %d connections", text.Bytes(int64(b.Header)), body, text.Bytes(b.Kept),
		text.Bytes(b.KeptInAll), text.Bytes(b.Frozen), b.Connections)
	w.shows(c)
	switch {
	case c.Share.Store != "":
		w.line("shares its limits by %s with all who do, which remembers what was sent, too",
			redactedStore(string(c.Share.Store)))
	case c.State == "":
		w.line("forgets what it sent when it stops (state names a file that remembers)")
	default:
		w.line("remembers in %s what it sent and still counts, over a restart", c.State)
	}
	if c.Sent != "" {
		w.line("writes a line for each attempt that it sent to %s", c.Sent)
	}
}

// shows describes the addresses for people and tools, and how the proxy ends.
func (w *proxyWords) shows(c *proxy.Config) {
	m := c.Metrics
	switch {
	case c.Admin != proxy.Off:
		w.line("shows its page at http://%s/ and its numbers at http://%s/metrics, to this machine alone", c.Admin, c.Admin)
	case m.Listen == "":
		w.line("has no page and no numbers (admin: %q)", proxy.Off)
	default:
		w.line("has no page (admin: %q)", proxy.Off)
	}
	if m.Listen != "" {
		names, readers := "without names of clients, keys, hosts and upstreams", "to anybody who reaches it"
		if m.Names {
			names = "with names of clients, keys, hosts and upstreams"
		}
		if m.Token != nil {
			readers = "to those who send its token"
		}
		w.line("has its numbers at http://%s/metrics, %s, %s; /livez and /readyz need no token", m.Listen, names, readers)
	}
	if c.Grace > 0 {
		w.line("gives waiting requests %v to be sent before it stops", c.Grace)
	} else {
		w.line("refuses waiting requests when it stops, and finishes those in flight (grace: 0s)")
	}
	if path, _ := c.HandoverPath(); path != "" {
		w.line("hands over to a next process by %s, without a drop", path)
	}
}

// comes describes the clients, and the share of each.
func (w *proxyWords) comes(c *proxy.Config) {
	keyed := 0
	for _, k := range c.Clients.List {
		keyed += len(k.Keys)
	}
	switch {
	case keyed > 0 && !c.Open:
		w.line("lets in who has a key for it, and refuses others with 401")
	case keyed > 0:
		w.line("lets in anybody who reaches it (open: true); a key says who it is")
	default:
		w.line("lets in anybody who reaches it, without a key")
	}
	for i, k := range c.Clients.List {
		var by []string
		for _, h := range k.Keys {
			by = append(by, "a key ("+w.file.From[h]+")")
		}
		for _, a := range k.Addresses {
			by = append(by, a.String())
		}
		if c.Clients.Header != "" && len(k.Keys) == 0 {
			by = append(by, c.Clients.Header+": "+k.Name)
		}
		w.line("  %s, known by %s", k.Name, or(by))
		its := shareInWords(c, k)
		switch next := i + 1; {
		case next < len(c.Clients.List) && shareInWords(c, c.Clients.List[next]) == its: // after the last of them
		case i > 0 && shareInWords(c, c.Clients.List[i-1]) == its:
			w.line("    each of them: %s", its)
		default:
			w.line("    %s", its)
		}
	}
	others := "by address"
	if c.Clients.Header != "" {
		others = "by " + c.Clients.Header + ", or else by address"
	}
	if keyed > 0 && !c.Open {
		return
	}
	if c.Clients.Most > 0 {
		others += fmt.Sprintf(", up to %d of them", c.Clients.Most)
	}
	w.line("  others, told apart %s, each", others)
	w.line("    %s", shareInWords(c, c.Clients.Default))
}

// shareInWords is what of the limits a client gets.
func shareInWords(c *proxy.Config, k proxy.Client) string {
	parts := []string{fmt.Sprintf("weight %g", cmp.Or(k.Weight, 1))}
	if k.HeadStart > 0 {
		parts = append(parts, fmt.Sprintf("goes before others that came up to %s later", plain(k.HeadStart)))
	}
	if k.Reserve > 0 {
		parts = append(parts, fmt.Sprintf("leaves %g %% of each limit free for others", k.Reserve*100))
	}
	if len(k.Models) > 0 {
		parts = append(parts, "may use "+strings.Join(k.Models, ", ")+" alone")
	}
	if k.InFlight > 0 {
		parts = append(parts, fmt.Sprintf("%d in flight", k.InFlight))
	}
	parts = append(parts, fmt.Sprintf("up to %d waiting", cmp.Or(k.MaxWaiting, defaultWaiting)))
	if k.MaxWait != 0 && k.MaxWait != c.MaxWait {
		parts = append(parts, waits(k.MaxWait))
	}
	for _, l := range k.Limits {
		parts = append(parts, "at most "+rateInWords(l))
	}
	return strings.Join(parts, ", ")
}

func waits(d time.Duration) string {
	if d < 0 {
		return "waits for nothing"
	}
	return "waits up to " + plain(d)
}

// upstream describes the destination of an upstream's requests, and their limits.
func (w *proxyWords) upstream(c *proxy.Config, u *proxy.Upstream) {
	host := c.Listen
	if u.Host != "" {
		_, port, _ := net.SplitHostPort(c.Listen)
		host = net.JoinHostPort(u.Host, port)
	}
	if len(u.Targets) > 0 {
		w.line("sends %s://%s%s/… to one of %d targets (%s)", scheme(c), host, u.Path, len(u.Targets), u.Name)
		w.targets(c, u)
		w.charges(u)
	} else {
		to := strings.TrimSuffix(secret.SanitizeAddress(u.To.String()), "/")
		w.line("sends %s://%s%s/… to %s/… (%s)", scheme(c), host, u.Path, to, u.Name)
		w.limits(u)
		w.prices(c, u)
		w.keys(u)
	}
	answer := "however long its answer takes"
	if u.AnswerTimeout > 0 {
		answer = "waits " + plain(u.AnswerTimeout) + " for its answer"
	}
	w.line("  sends a request up to %d times, where that is safe; connects within %s, %s", cmp.Or(u.Attempts, 3),
		plain(u.ConnectTimeout), answer)
	if b := &u.Batches; b.Folder != "" {
		w.line("  keeps files and batches in %s, those of a client up to %s, for %s once they have ended; their requests "+
			"have weight %v beside clients", b.Folder, text.Bytes(cmp.Or(b.Most, jobs.DefaultMost)),
			text.Span(cmp.Or(b.Keep, jobs.DefaultKeep)), cmp.Or(b.Weight, 1))
	}
	if u.TLS != nil {
		var of []string
		if u.TLS.RootCAs != nil {
			of = append(of, "certificates of your authorities alone are taken")
		}
		if len(u.TLS.Certificates) > 0 {
			of = append(of, "it has a certificate of its own")
		}
		if len(of) > 0 {
			w.line("  TLS: %s", strings.Join(of, "; "))
		}
	}
}

// keys describes the keys of a server, and the fields that requests get.
func (w *proxyWords) keys(u *proxy.Upstream) {
	for _, k := range u.Keys {
		own := ""
		if len(k.Limits) > 0 {
			own = ", which has " + ratesInWords(k.Limits) + " in place of the limits of each key"
		}
		w.line("  key %s: %s%s", k.Name, w.file.From[k.Secret], own)
	}
	if len(u.Keys) > 1 {
		w.line("    each request goes with the key that may go soonest")
	}
	if len(u.Keys) == 0 {
		w.line("  key: the clients' own")
	}
	var sets []string
	for _, all := range [][]proxy.Field{u.Header, u.Query} {
		for _, f := range all {
			name := f.Name
			if strings.Contains(string(f.Value), "{key}") {
				name += " (with the key)"
			}
			sets = append(sets, name)
		}
	}
	if len(sets) > 0 {
		w.line("  sets: %s", strings.Join(sets, ", "))
	}
	switch {
	case !u.Numbers():
	case u.NonceGap > 0:
		w.line("    with a number that rises with each key: requests of a key go %v apart at least", u.NonceGap)
	default:
		w.line("    with a number that rises with each key: one request of a key is in flight at a time")
	}
}

func (w *proxyWords) limits(u *proxy.Upstream) {
	if u.Preset != "" {
		preset, _ := provider.LookupPreset(u.Preset)
		for _, p := range preset.Policies {
			w.line("  limit: %s (%s)", limitInWords(p), u.Preset)
		}
		if u.PerSecond {
			w.line("    and those per minute per second, too")
		}
	}
	for _, l := range u.Limits {
		w.line("  limit: %s, of %s", rateInWords(l.Limit), whoseInWords(l))
	}
	w.charges(u)
	if u.InFlight > 0 {
		w.line("  limit: %d requests at once, of each key", u.InFlight)
	}
	if u.Use > 0 && u.Use < 1 {
		w.line("  %g %% of each limit is used", u.Use*100)
	}
	if u.Ramp > 0 {
		w.line("  the load rises in %s, at the start and after a rest", plain(u.Ramp))
	}
	unknown, part := "nobody knows", "it"
	if u.Preset != "" || len(u.Limits) > 0 {
		unknown = "there may be a tighter one"
	}
	if u.Strangers {
		part = "a fair share"
	}
	switch {
	case u.Auto:
		w.line("  limit: %s; %s is found out, from what answers say and refuse", unknown, part)
	case u.Preset == "" && len(u.Limits) == 0 && u.InFlight == 0:
		w.line("  limit: none is given; it keeps to what answers say")
	}
}

func (w *proxyWords) charges(u *proxy.Upstream) {
	for _, c := range u.Charges {
		w.line("  charge: %s %s", c.On, chargeInWords(c))
	}
	if len(u.First) > 0 {
		w.line("  first: %s go before other requests of the same client%s", strings.Join(u.First, ", "), freeInWords(u))
	}
}

// freeInWords says what other requests leave free for those that go first.
func freeInWords(u *proxy.Upstream) string {
	if u.FirstFree <= 0 {
		return ""
	}
	return fmt.Sprintf("; these leave %g %% of each limit free", u.FirstFree*100)
}

// chargeInWords says what a charge is.
func chargeInWords(c provider.Charge) string {
	var words []string
	v := chargeOf(&http.Request{URL: &url.URL{}}, &c, c.Resource)
	if len(c.Cost) > 0 {
		words = append(words, "costs "+costWords(v.Cost))
	}
	for _, unit := range slices.Sorted(maps.Keys(v.Body)) {
		words = append(words, "costs what "+v.Body[unit]+" of the body says in "+unit)
	}
	for _, unit := range slices.Sorted(maps.Keys(v.Answer)) {
		words = append(words, "did cost what "+v.Answer[unit]+" of the answer says in "+unit)
	}
	if c.Resource != "" {
		words = append(words, "counts in the resource "+c.Resource)
	}
	return strings.Join(words, ", ")
}

// prices describes the prices behind a limit of money, if there is one.
func (w *proxyWords) prices(c *proxy.Config, u *proxy.Upstream) {
	if !slices.ContainsFunc(u.AllRates(c), func(l rate.Limit) bool { return l.Unit == limit.Money }) {
		return
	}
	var known []string
	others := false
	for _, p := range u.Prices {
		others = others || p.Model == ""
		price := fmt.Sprintf("%s %g and %g USD per million tokens of input and output", cmp.Or(p.Model, "each other model"),
			p.Input, p.Output)
		if p.Cached > 0 {
			price += fmt.Sprintf(", %g of input from a cache", p.Cached)
		}
		known = append(known, price)
	}
	if u.RequestPrice > 0 {
		known = append(known, fmt.Sprintf("%g USD each request", u.RequestPrice))
	}
	if seller, ok := provider.LookupProvider(u.Seller()); ok && len(seller.Models) > 0 && !others {
		known, others = append(known, fmt.Sprintf("as %s published them (%s)", seller.Title, seller.ModelsAsOf)), true
	}
	if !others {
		known = append(known, "a model whose price nobody knows (prices says it) is refused with 403 where dollars are "+
			"counted")
	}
	w.line("  prices: %s", strings.Join(known, "; "))
}

// whoseInWords names the scope of a limit.
func whoseInWords(l proxy.Limit) string {
	words := map[provider.Scope]string{provider.Key: "each key", provider.IP: "all requests together",
		provider.Model: "each model of each key", provider.Resource: "each resource of each key",
		provider.Route: "each route of each key"}[l.Scope]
	if l.Only != "" {
		return fmt.Sprintf("the %s %s, for each key", l.Scope, l.Only)
	}
	return words
}

// rateInWords is a limit with its way to count.
func rateInWords(l rate.Limit) string {
	if !l.Bucket {
		return l.Text + " " + ruleWords[provider.Rolling]
	}
	return fmt.Sprintf("%s, %s that holds %d", l.Text, ruleWords[provider.Bucket], l.Most())
}

func ratesInWords(all []rate.Limit) string {
	var words []string
	for _, l := range all {
		words = append(words, rateInWords(l))
	}
	return strings.Join(words, " and ")
}

// sees describes the view of a client: the wait of its requests, and their answers.
func (w *proxyWords) sees(c *proxy.Config) {
	w.line("A client sends at once. Its request %s for its turn; one that would wait longer is answered 429 at once, "+
		"with Retry-After, and is not sent.", waits(c.MaxWait))
	w.line("Answers, also refusals that are not sent again, come as the server gave them, with Paceline-Waited.")
	if slices.ContainsFunc(c.Upstreams, func(u proxy.Upstream) bool { return u.Path == "" && u.Host == "" }) {
		return
	}
	w.line("What is for none of these is answered 404.")
}

// or joins a list for a sentence: a, b or c.
func or(all []string) string { return joined(all, " or ") }

// joined joins a list, with a word before its last.
func joined(all []string, word string) string {
	if n := len(all); n > 1 {
		return strings.Join(all[:n-1], ", ") + word + all[n-1]
	}
	return strings.Join(all, "")
}

// isLoopback reports whether only this machine can connect to a host.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}
