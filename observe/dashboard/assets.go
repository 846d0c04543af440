package dashboard

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/web"
)

// The page itself. Its style and its charts are those of package web.
//
//go:embed assets/index.html assets/page.js assets/icon.svg
var files embed.FS

// asset is a file of the page: its own, or one of package web.
type asset struct{ own, shared, kind string }

const (
	html   = "text/html; charset=utf-8"
	style  = "text/css; charset=utf-8"
	script = "text/javascript; charset=utf-8"
)

var assets = map[string]asset{
	"":            {own: "index.html", kind: html},
	"page.js":     {own: "page.js", kind: script},
	"icon.svg":    {own: "icon.svg", kind: "image/svg+xml"},
	"page.css":    {shared: web.Style, kind: style},
	"chart.js":    {shared: web.Charts, kind: script},
	"uplot.js":    {shared: web.UPlot, kind: script},
	"uplot.css":   {shared: web.UPlotStyle, kind: style},
	"licence.txt": {shared: web.Licence, kind: "text/plain; charset=utf-8"},
}

func (a asset) data() []byte {
	if a.shared != "" {
		return web.File(a.shared)
	}
	data, err := files.ReadFile("assets/" + a.own)
	if err != nil {
		panic(err) // all of them are embedded: a test has checked
	}
	return data
}

// version identifies the files. An open page reloads itself when a server with other files takes
// over.
var version = sync.OnceValue(func() string {
	h := sha256.New()
	for _, name := range []string{"", "page.css", "page.js", "icon.svg", "chart.js", "uplot.js", "uplot.css"} {
		h.Write(assets[name].data())
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
})

func serveAsset(w http.ResponseWriter, r *http.Request, name string) {
	a, ok := assets[name]
	if !ok {
		refuse(w, http.StatusNotFound, "there is no %q here; the page is at the path that ends in a slash", name)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Cache-Control", "no-cache") // asked again, and answered with 304
	h.Set("ETag", `"`+version()+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.data()))
}
