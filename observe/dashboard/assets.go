package dashboard

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"sync"
	"time"
)

// The page itself. uPlot is as npm has it, with its licence beside it.
//
//go:embed assets/index.html assets/page.css assets/page.js assets/icon.svg assets/uplot/uPlot.iife.min.js assets/uplot/uPlot.min.css assets/uplot/LICENSE
var files embed.FS

type asset struct{ file, kind string }

var assets = map[string]asset{
	"":            {"index.html", "text/html; charset=utf-8"},
	"page.css":    {"page.css", "text/css; charset=utf-8"},
	"page.js":     {"page.js", "text/javascript; charset=utf-8"},
	"icon.svg":    {"icon.svg", "image/svg+xml"},
	"uplot.js":    {"uplot/uPlot.iife.min.js", "text/javascript; charset=utf-8"},
	"uplot.css":   {"uplot/uPlot.min.css", "text/css; charset=utf-8"},
	"licence.txt": {"uplot/LICENSE", "text/plain; charset=utf-8"},
}

func (a asset) data() []byte {
	data, err := files.ReadFile("assets/" + a.file)
	if err != nil {
		panic(err) // all of them are embedded: a test has looked
	}
	return data
}

// version stands for the files: a page that is open when a server with other files takes over loads itself again.
var version = sync.OnceValue(func() string {
	h := sha256.New()
	for _, name := range []string{"", "page.css", "page.js", "icon.svg", "uplot.js", "uplot.css"} {
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
