package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/observe/dashboard"
)

// watchFlags is the address of the page of a run.
type watchFlags struct{ addr string }

func (f *watchFlags) add(p *pflag.FlagSet) {
	p.StringVar(&f.addr, "page", "",
		"serve a page about the run at HOST:PORT, or at a PORT of this machine alone; port 0 is any free one")
}

// listen opens the address, so that a bad address is an error before the first request. It returns
// nil if no page is wanted.
func (f *watchFlags) listen() (*watching, error) {
	if f.addr == "" {
		return nil, nil
	}
	addr := f.addr
	if _, err := strconv.ParseUint(addr, 10, 16); err == nil {
		addr = ":" + addr
	}
	host, port, err := net.SplitHostPort(addr)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
		return nil, cli.Usage(fmt.Errorf("--page %q, expected HOST:PORT such as 127.0.0.1:7879, or a PORT; port 0 is any "+
			"free one", f.addr))
	}
	if host == "" { // other machines may see the page only at an address for them
		host = "127.0.0.1"
	}
	w := &watching{}
	if _, err := netip.ParseAddr(host); err != nil {
		w.hosts = []string{host}
	}
	w.listener, err = net.Listen("tcp", net.JoinHostPort(host, port))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, cli.Exit(cli.ExitConfig,
			fmt.Errorf("--page: port %s of %s is in use, maybe by the page of another run (lsof -i :%s says by whom): choose "+
				"another, such as --page 0, which is any free one", port, host, port))
	}
	if err != nil {
		return nil, cli.Exit(cli.ExitConfig, fmt.Errorf("--page: %w", err))
	}
	return w, nil
}

// watching is a served page. All its methods do nothing if it is nil.
type watching struct {
	listener net.Listener
	hosts    []string
	page     *dashboard.Page
	server   *http.Server
	stop     context.CancelFunc
}

// serve serves the page of a run until close is called, and prints its address through tell. The
// page records from now on, so that its first visitor sees the past. Without h, nothing is changed from it.
func (w *watching) serve(title string, r *run.Run, beside func() []string, tell func(string), h *helm) error {
	if w == nil {
		return nil
	}
	var err error
	w.page, err = dashboard.New(dashboard.Config{Sources: r.Sources(), Beside: beside, Title: title, Hosts: w.hosts,
		Forms: h.reaches})
	if err != nil {
		return cli.Usage(fmt.Errorf("--page: %w", err))
	}
	var ctx context.Context
	ctx, w.stop = context.WithCancel(context.Background())
	address := "http://" + w.listener.Addr().String()
	mux := http.NewServeMux()
	mux.Handle("/", w.page)
	if h != nil {
		mux.Handle(knobsPath, h.serves(address))
	}
	w.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	go w.page.Record(ctx)
	go func() { _ = w.server.Serve(w.listener) }()
	tell("page: " + reachable(address+"/"))
	return nil
}

func (w *watching) close() {
	if w == nil {
		return
	}
	_ = w.listener.Close()
	if w.server != nil {
		w.stop()
		w.page.Close()
		_ = w.server.Close()
	}
}
