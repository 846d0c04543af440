package tokens

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// pdf is a file with these objects, as writers of PDFs make them.
func pdf(objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
	for i, o := range objects {
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	b.WriteString("trailer\n<</Root 1 0 R>>\nstartxref\n0\n%%EOF\n")
	return b.Bytes()
}

func deflated(s string) string {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	z.Write([]byte(s))
	z.Close()
	return b.String()
}

// objects is an object stream with these objects, and keys for its dictionary.
func objects(keys, within string) string {
	return fmt.Sprintf("<</Type/ObjStm/N 9/First 20%s>>stream\r\n%s\nendstream", keys, within)
}

// inlined is a file as bodies have it.
func inlined(b []byte) []byte {
	return []byte(`"data:application/pdf;base64,` + base64.StdEncoding.EncodeToString(b) + `"`)
}

const page = "<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 5 0 R >> >> /MediaBox [0 0 612 792] >>"

func TestPDFPages(t *testing.T) {
	root := "<</Type/Catalog/Pages 2 0 R>>"
	tree := func(n int) string { return fmt.Sprintf("<</Type/Pages/Kids[3 0 R 4 0 R]/Count %d>>", n) }
	for name, c := range map[string]struct {
		file []byte
		want int64 // 0: unknown
	}{
		"plain":                      {pdf(root, tree(2), page, page), 2},
		"keys in another order":      {pdf(root, "<</Count 1/Kids[3 0 R]/Type/Pages>>", "<</Parent 2 0 R\n/Type\t/Page>>"), 1},
		"no tree":                    {pdf(root, page, page, page), 3},
		"names that begin so":        {pdf(root, tree(1), page, "<</Type/PageLabel>>", "<</Type/Pagesque>>"), 1},
		"revised":                    {append(pdf(root, tree(2), page, page), pdf(root, tree(2), page, page)...), 2},
		"trees within a tree":        {pdf(root, tree(3), "<</Type/Pages/Parent 2 0 R/Kids[5 0 R 6 0 R]/Count 2>>", page, page, page), 3},
		"text that looks like it":    {pdf(root, page, `<</Title (a \) /Type /Page \( >> (inner) /Type /Page)/Key <2F50616765>>>`), 1},
		"a comment":                  {pdf(root, page+"% << /Type /Page >>\n"), 1},
		"a stream that looks so":     {pdf(root, page, "<</Length 30>>stream\n<</Type/Page>> <</Type/Page>>\nendstream"), 1},
		"object streams":             {pdf(root, objects("/Filter/FlateDecode", deflated(tree(2)+page+page))), 2},
		"two object streams":         {pdf(root, objects("/Filter[/FlateDecode]", deflated(tree(4)+page+page)), objects("/Filter /FlateDecode", deflated(page+page))), 4},
		"pages after a stream":       {pdf(root, "<</Length 9>>stream\n(((<<<<((\nendstream", tree(1), page), 1},
		"a tree, and pages hidden":   {pdf(root, tree(7), objects("/Filter/LZWDecode", "x")), 7},
		"all of it hidden":           {pdf(root, objects("/Filter/LZWDecode", "x")), 0},
		"encrypted":                  {pdf(root, page, objects("/Filter/FlateDecode", "\x01\x02\x03\x04")), 0},
		"a predictor":                {pdf(root, objects("/Filter/FlateDecode/DecodeParms<</Predictor 12>>", deflated(page))), 0},
		"a count that is a lie":      {pdf(root, tree(1_000_000), page, page), 2},
		"only a lie":                 {pdf(root, tree(1_000_000)), 0},
		"an outline has a count":     {pdf(root, "<</Type/Outlines/Count 90>>", tree(1), page), 1},
		"cut off":                    {pdf(root, tree(2), page, page)[:190], 2},
		"no PDF":                     {[]byte("PK\x03\x04 /Type /Page"), 0},
		"nothing":                    {nil, 0},
		"a bomb of an object stream": {pdf(root, objects("/Filter/FlateDecode", deflated(page+strings.Repeat(" ", 1<<22)+page))), 0},
	} {
		n, ok := pdfPages(inlined(c.file))
		if ok != (c.want > 0) || ok && n != c.want {
			t.Errorf("%s: %d pages, %t; want %d", name, n, ok, c.want)
		}
	}
}

// Pages count as the providers document. A file that is no PDF is guessed, and Guessed reports it.
func TestFilesCountByPages(t *testing.T) {
	three := pdf("<</Type/Pages/Kids[]/Count 3>>", page, page, page, "<</Length 200000>>stream\n"+strings.Repeat("x", 200000)+"\nendstream")
	claude := `{"model":"%s","max_tokens":10,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":%s}}]}]}`
	openai := `{"model":"%s","max_tokens":10,"messages":[{"role":"user","content":[{"type":"file","file":{"file_data":%s}}]}]}`
	gemini := `{"contents":[{"parts":[{"inlineData":{"mimeType":"application/pdf","data":%s}}]}]}`
	e, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	input := func(api API, raw, model string) (int64, bool) {
		b, err := Parse(api, []byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if b.Model == "" {
			b.Model = model
		}
		return e.Of(b).Input, b.Guessed
	}
	for _, c := range []struct {
		api         API
		form, model string
		each        int64
	}{{Messages, claude, "claude-opus-4-1", 3000}, {Chat, openai, "gpt-4o", 1765}, {Gemini, gemini, "gemini-2.5-flash", 258}, {Gemini, gemini, "gemini-3-pro", 560}} {
		fill := func(v []byte) string {
			if strings.Count(c.form, "%s") == 1 {
				return fmt.Sprintf(c.form, v)
			}
			return fmt.Sprintf(c.form, c.model, v)
		}
		n, guessed := input(c.api, fill(inlined(three)), c.model)
		// Before any answer the estimate is 1.5 times the count.
		if guessed || n < 3*c.each || 2*n > 3*(3*c.each+40) {
			t.Errorf("%s: %d tokens for three pages, guessed %t; want %d", c.model, n, guessed, 3*c.each)
		}
		bytes := make([]byte, 160_000)
		if n, guessed = input(c.api, fill(inlined(bytes)), c.model); !guessed || n < 10_000 || n > 15_100 {
			t.Errorf("%s: %d tokens for what is no PDF, guessed %t", c.model, n, guessed)
		}
	}
}

// pdfPages reads no more of any file than the budget allows, and finds no more pages than fit.
func FuzzPDF(f *testing.F) {
	f.Add(pdf(page, page))
	f.Add(pdf(objects("/Filter/FlateDecode", deflated(page))))
	f.Add([]byte("%PDF-" + strings.Repeat("<<", 1000)))
	f.Add([]byte("%PDF-" + strings.Repeat("(", 1000) + "/Type/Page"))
	f.Add(pdf("<</Type/Pages/Kids[]/Count 99999999999999999999>>"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, ok := pdfPages(inlined(b))
		if ok && (n <= 0 || n > int64(len(b))) {
			t.Errorf("%d pages in %d bytes", n, len(b))
		}
		if again, _ := pdfPages(inlined(b)); again != n {
			t.Errorf("%d pages, and then %d", n, again)
		}
		pdfPages(b)
	})
}
