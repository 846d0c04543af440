// Package dashboard provides a web page that shows a Gate, a Group, a Pool or a transport.Transport
// at work. The page answers these questions. Do the requests go as fast as the server allows? Which
// requests wait, of which client, for which limit and until when? Which requests did the server
// refuse, and why?
//
//	http.Handle("/debug/paceline/", dashboard.Handler(t))
//
// Mount the page in your server as you mount net/http/pprof, at any path that ends in a slash. The
// page is for people. For metrics that Prometheus reads, use package observe/prom.
//
// While nobody views the page, it does no work, unless Page.Record runs. While somebody views the
// page, it takes one Snapshot of each Source (a Gate, a Pool and so on) every second, once for all
// viewers. The goroutine of one viewer's HTTP request takes it: the page never starts a goroutine
// of its own. At most 100 viewers may view the page at the same time.
//
// For each Source (a Gate, a Pool and so on), the page stores its history in memory: one point for
// every five seconds of the last 15 minutes. This takes some 20 kB for each Source. The history
// begins with the first viewer, or when Page.Record is called.
//
// The page is read-only, and does not authenticate viewers. So mount it where only authorized
// people have access. The page answers a request only if the Host of the request is localhost, ends
// in .localhost, is an IP address, or is one of Config.Hosts. So a stranger's web site cannot read
// the page through a DNS name that points to this server. The page loads nothing from other
// servers. Names of clients, models and routes may come from strangers, so the page shows them as
// plain text, never as HTML.
//
//	page.go            Config, Page, Handler; the Host names to which it answers
//	look.go            one frame a second, computed once for all viewers
//	view.go            which limits, clients and keys the page lists, in which order
//	first_sentence.go  the first sentence of the page: who waits for what
//	history.go         the charts' points of the last 15 minutes
//	stream.go          the stream of server-sent events to a viewer
//	assets.go          the HTML and script of the page; internal/web has the style, the charts and
//	                   text(), which writes names as text
package dashboard
