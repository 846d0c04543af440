//go:build unix

package main

import (
	"errors"
	"fmt"
	"html"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/paceline-go/paceline/internal/app/daemon"
)

// steered is a program that its user changes, by paceline ctl or from its page.
type steered interface {
	State() any
	// change makes a change, and writes a line about it that says where it came from.
	change(t daemon.Turn, from string) (said string, err error)
}

// helm is where a program is changed.
type helm struct {
	steered
	forms daemon.PageForms
	at    atomic.Pointer[string] // the address of the page; nil: there is none
}

// knobsPath is where a page has the forms.
const knobsPath = "/knobs"

func newHelm(s steered, tell func(string)) *helm {
	h := &helm{steered: s}
	h.forms = daemon.PageForms{PageSessions: &daemon.PageSessions{}, Log: tell,
		Ask:  func(w http.ResponseWriter, failed string) { h.write(w, "ask", failed) },
		Show: func(w http.ResponseWriter, said string) { h.write(w, "show", said) },
		Turn: func(t daemon.Turn, from string) (string, error) { return s.change(t, "the page, from "+from) }}
	return h
}

// serves notes the address of the page, and returns what is to be served there at knobsPath.
func (h *helm) serves(address string) http.Handler {
	h.at.Store(&address)
	return &h.forms
}

// reaches reports whether a viewer of the page can use the forms. Without h, nobody can.
func (h *helm) reaches(r *http.Request) bool { return h != nil && h.forms.Serves(r) }

// open lets paceline ctl change the program until close is called. Without a socket it goes on all the same.
func (h *helm) open(failed func(error)) (close func()) {
	c, err := daemon.Controlled(h)
	if err != nil {
		failed(err)
	}
	return c.Close
}

// Turn implements daemon.Controllable.
func (h *helm) Turn(t daemon.Turn) (said string, err error) {
	if t.Knob != daemon.Page {
		return h.change(t, "paceline ctl")
	}
	at := h.at.Load()
	if at == nil {
		return "", errors.New("it has no page; expected a new start with --page (run) or --admin (proxy)")
	}
	h.forms.Log("paceline ctl: a token for the page was made")
	return *at + knobsPath + "\ntoken, for one session, within ten minutes: " + h.forms.Token(), nil
}

func (h *helm) write(w http.ResponseWriter, form, said string) {
	s, _ := h.State().(ctlState)
	s.PID = strconv.Itoa(os.Getpid())
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	title := html.EscapeString(s.title())
	fmt.Fprintf(w, pageHead, title, title)
	if said != "" {
		fmt.Fprintf(w, `<p class="banner" role="status">%s</p>`, html.EscapeString(said))
	}
	if form == "ask" {
		fmt.Fprint(w, askForm)
		return
	}
	var about strings.Builder
	s.write(&about)
	fmt.Fprintf(w, "<pre>%s</pre>", html.EscapeString(about.String()))
	upstream, clients := "", len(s.Clients) > 0
	if clients {
		upstream = `<label>Upstream <input name="name"></label> `
	}
	for _, f := range [...]struct {
		knob, fields string
		shown        bool
	}{
		{daemon.Limit, limitFields, true}, {daemon.Pause, pauseFields, true}, {daemon.Resume, resumeFields, true},
		{daemon.Concurrency, upstream + concurrencyFields, true}, {daemon.Share, shareFields, clients},
	} {
		if f.shown {
			fmt.Fprintf(w, `<form method="post"><input type="hidden" name="knob" value="%s"><p>%s</p></form>`, f.knob, f.fields)
		}
	}
	fmt.Fprint(w, `<p><a href="./">To the page</a></p>`)
}

// The forms are without a script. They are no templates: these would add 11 MiB to the program.
const (
	pageHead = `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s</title><link rel="stylesheet" href="page.css">
<h1>%s</h1>`
	askForm = `<form method="post">
<p><label>Token of <code>paceline ctl page</code> <input name="token" type="password" autocomplete="off" required autofocus></label>
<button>Begin</button></p></form>`
	limitFields = `<label>Limit <input name="name" placeholder="20/s; the only one, if empty"></label>
<label>is now <input name="value" placeholder="10/s" required></label> <button>Change</button>`
	pauseFields = `<label>Pause <input name="name" placeholder="a key; all, if empty"></label>
<label>for <input name="for" placeholder="30m; until resumed, if empty"></label> <button>Pause</button>`
	resumeFields = `<label>Resume <input name="name" placeholder="a key; all, if empty"></label>
<button>Resume</button>`
	concurrencyFields = `<label>Requests in flight
<input name="value" inputmode="numeric" required placeholder="0: as at the start"></label> <button>Change</button>`
	shareFields = `<label>Client <input name="name" required></label>
<label>has the weight <input name="value" inputmode="decimal" required></label> <button>Change</button>`
)
