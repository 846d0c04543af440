package dashboard_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/observe/dashboard"
	"github.com/paceline-go/paceline/transport"
)

// A page beside what the program serves anyway, for those who can reach it: http://127.0.0.1:6060/debug/paceline/.
func ExampleHandler() {
	paced := transport.Must(transport.Config{Limiter: limit.MustRolling(20, time.Second)})
	mux := http.NewServeMux() // or http.DefaultServeMux, beside net/http/pprof
	mux.Handle("/debug/paceline/", dashboard.Handler(paced))

	r := httptest.NewRequest("GET", "http://127.0.0.1:6060/debug/paceline/", nil)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}

// Several sources on one page, under a name for others in the house. The page keeps a record, so
// that the first viewer after a problem sees it.
func ExampleNew() {
	small := paceline.NewGate(limit.MustRolling(20, time.Second))
	large := transport.Must(transport.Config{Preset: "openai:tier1"})
	p, err := dashboard.New(dashboard.Config{
		Sources: []observe.Source{observe.NameSource("reports", small), observe.NameSource("prompts", large)},
		Title:   "Reports", Hosts: []string{"reports.internal"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := &http.Server{Addr: "127.0.0.1:6060", Handler: p}
	server.RegisterOnShutdown(p.Close) // else those who look would keep it from shutting down
	// go p.Record(ctx)
	// err = server.ListenAndServe()
}
