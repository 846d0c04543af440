package proxy

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Some servers name the next page in the body of an answer alone. The table of providers knows these fields.

const (
	// mostPage bounds the bodies that are looked into, before and after their coding.
	mostPage = 4 << 20
	// mostDepth bounds how deep they are: no page has its address further down.
	mostDepth = 64
)

// digests are fields with a digest or a signature of the body.
var digests = []string{"Signature-Input", "Signature", "Content-Digest", "Repr-Digest", "Digest", "Content-Md5"}

// leadPages changes the addresses of further pages in the body of an answer to those of the proxy. All else
// of the body stays as it is, byte by byte.
func (v *visit) leadPages(r *http.Response) {
	if len(v.upstream.pages) == 0 || v.whole || v.upstream.KeepLinks || v.in.Host == "" || r.Request.Method == http.MethodHead ||
		r.StatusCode/100 != 2 || r.StatusCode == http.StatusPartialContent || r.ContentLength == 0 {
		return
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind != "application/json" && !strings.HasSuffix(kind, "+json") {
		return
	}
	signed := func(name string) bool { return r.Header.Get(name) != "" }
	coding := strings.ToLower(r.Header.Get("Content-Encoding"))
	switch {
	case slices.ContainsFunc(digests, signed) || len(r.Trailer) > 0:
		v.leaves("the answer is signed or has a digest")
		return
	case coding != "" && coding != "gzip" && coding != "identity":
		v.leaves("the answer is coded as " + coding)
		return
	case r.ContentLength > mostPage:
		v.leaves("the answer is too long")
		return
	}
	from := r.Body
	b, err := io.ReadAll(io.LimitReader(from, mostPage+1))
	rest := io.Reader(from)
	if err != nil {
		rest = failing{err}
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(b), rest), from}
	if err != nil {
		return
	}
	if len(b) > mostPage {
		v.leaves("the answer is too long")
		return
	}
	plain := b
	if coding == "gzip" {
		if plain, err = unzip(b); err != nil {
			return
		}
		if len(plain) > mostPage {
			v.leaves("the answer is too long")
			return
		}
	}
	if !bytes.Contains(bytes.ToLower(plain), []byte(hostname(v.upstream.To.Host))) {
		return
	}
	led, ok := changeStrings(plain, v.upstream.pages, v.page)
	if !ok {
		return
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{bytes.NewReader(led), from}
	r.Header.Del("Content-Encoding") // every client takes a body without one
	r.Header.Set("Content-Length", strconv.Itoa(len(led)))
	r.ContentLength, r.TransferEncoding = int64(len(led)), nil
}

// failing is the end of a body that could not be read.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func unzip(b []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(z, mostPage+1))
}

// page is here for a field of a body. A relative address stays: some clients put it behind the base URL that
// they know, and others resolve it.
func (v *visit) page(ref string) (string, bool) {
	if strings.HasPrefix(ref, "/") && !strings.HasPrefix(ref, "//") {
		return "", false
	}
	return v.here(ref)
}

// leaves says once that clients may follow pages past the proxy.
func (v *visit) leaves(why string) {
	if !v.upstream.told.Swap(true) {
		v.proxy.config.Log.Warn("clients that follow the pages of a list may leave the proxy and its limits", "upstream", v.upstream.Name,
			"why", why)
	}
}

// step is an object or array that is open while JSON is read.
type step struct {
	object bool
	named  bool // the name of a member has come, and not its value
	name   string
}

// changeStrings changes strings within JSON, at the paths of members: "paging/next". ok is false if there is
// none to change, or if b is no JSON; then b stays as it is.
func changeStrings(b []byte, paths []string, change func(string) (string, bool)) (changed []byte, ok bool) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var open []step
	copied := 0
	for {
		from := int(d.InputOffset())
		t, err := d.Token()
		if err == io.EOF && len(open) == 0 {
			break
		}
		if err != nil { // or cut off
			return nil, false
		}
		top := &step{}
		if len(open) > 0 {
			top = &open[len(open)-1]
		}
		switch v := t.(type) {
		case json.Delim:
			if v == '}' || v == ']' {
				open = open[:len(open)-1]
				continue
			}
			top.named = false
			if open = append(open, step{object: v == '{'}); len(open) > mostDepth {
				return nil, false
			}
			continue
		case string:
			if top.object && !top.named {
				top.name, top.named = v, true
				continue
			}
			if to, is := change(v); is && slices.Contains(paths, pathOf(open)) {
				quote := from + bytes.IndexByte(b[from:], '"') // a colon or a comma comes before it
				changed = append(append(changed, b[copied:quote]...), quoted(to)...)
				copied = int(d.InputOffset())
			}
		}
		top.named = false
	}
	if copied == 0 {
		return nil, false
	}
	return append(changed, b[copied:]...), true
}

// pathOf is the path of the value that is read; empty: it is in an array, is all of the text, or no path has
// such a name.
func pathOf(open []step) string {
	names := make([]string, len(open))
	for i := range open {
		if !open[i].object || strings.Contains(open[i].name, "/") {
			return ""
		}
		names[i] = open[i].name
	}
	return strings.Join(names, "/")
}

// quoted is a text as JSON, without the escapes that HTML needs.
func quoted(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string has always a form
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
