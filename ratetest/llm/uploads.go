package llm

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
)

const (
	mostFile  = 64 << 20  // bytes of a file
	mostKept  = 256 << 20 // bytes of all files
	mostFiles = 10_000
)

// file is a file that a client has sent, or that a batch has made.
type file struct {
	owner, id, name, purpose string
	created                  int64 // seconds since 1970
	text                     []byte
}

var fileRoutes = []freeRoute{
	{"POST /v1/files", (*Server).makeFile}, {"GET /v1/files", (*Server).listFiles},
	{"GET /v1/files/{}", ofFile(func(_ *Server, f *file) any { return f.show() })},
	{"GET /v1/files/{}/content", ofFile(func(_ *Server, f *file) any { return raw(f.text) })},
	{"DELETE /v1/files/{}", ofFile((*Server).deleteFile)},
}

func (f *file) show() m {
	return m{"id": f.id, "object": "file", "bytes": len(f.text), "created_at": f.created, "filename": f.name,
		"purpose": f.purpose, "status": "processed", "status_details": nil, "expires_at": nil}
}

var purposes = []string{"batch", "fine-tune", "assistants", "vision", "user_data", "evals"}

// makeFile reads the file from a form of several parts.
func (l *Server) makeFile(q *freeCall) (any, *problem) {
	f := &file{owner: q.owner, id: "file-" + q.id, created: l.wall(q.now).Unix()}
	parts, err := partsOf(q)
	if err != nil {
		return nil, wrong(badRequest, err.Error())
	}
	for part, text := range parts {
		switch part.FormName() {
		case "purpose":
			f.purpose = string(text)
		case "file":
			f.name, f.text = part.FileName(), text
		}
	}
	switch {
	case f.purpose == "" || !slices.Contains(purposes, f.purpose):
		p := badParam("purpose", "'%.50s' is not one of ['%s'] - 'purpose'", f.purpose, strings.Join(purposes, "', '"))
		p.Missing = f.purpose == ""
		return nil, p
	case f.text == nil:
		p := badParam("file", "'file' is a required property")
		p.Missing = true
		return nil, p
	case !l.keep(f):
		return nil, wrong(badRequest, fmt.Sprintf("This server keeps %d bytes of files and no more.", mostKept))
	}
	return f.show(), nil
}

// partsOf returns the parts of a form with their texts.
func partsOf(q *freeCall) (map[*multipart.Part][]byte, error) {
	again := http.Request{Method: http.MethodPost, Header: q.Header, Body: io.NopCloser(bytes.NewReader(q.body))}
	r, err := again.MultipartReader()
	if err != nil {
		return nil, err
	}
	all := map[*multipart.Part][]byte{}
	for {
		part, err := r.NextPart()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if all[part], err = io.ReadAll(part); err != nil {
			return nil, err
		}
	}
}

// keep adds a file, unless there is no room. The lock is held.
func (l *Server) keep(f *file) bool {
	if l.kept+len(f.text) > mostKept || len(l.files) >= mostFiles {
		return false
	}
	l.kept += len(f.text)
	l.files = append(l.files, f)
	return true
}

// fileOf returns a file of the key's owner, nil if there is none.
func (l *Server) fileOf(q *freeCall, id string) *file {
	i := slices.IndexFunc(l.files, func(f *file) bool { return f.id == id && f.owner == q.owner })
	if i < 0 {
		return nil
	}
	return l.files[i]
}

// ofFile answers a request for the file in its path.
func ofFile(answer func(l *Server, f *file) any) func(*Server, *freeCall) (any, *problem) {
	return func(l *Server, q *freeCall) (any, *problem) {
		f := l.fileOf(q, q.parts[0])
		if f == nil {
			return nil, wrong(notThere, fmt.Sprintf("No such File object: %.100s", q.parts[0]))
		}
		return answer(l, f), nil
	}
}

func (l *Server) listFiles(q *freeCall) (any, *problem) {
	l.endBatches(q)
	var own []*file
	for _, f := range slices.Backward(l.files) { // the newest first
		if want := q.URL.Query().Get("purpose"); f.owner == q.owner && (want == "" || want == f.purpose) {
			own = append(own, f)
		}
	}
	return openAIList(idPage(q, 10_000, own, func(f *file) string { return f.id }, (*file).show))
}

func (l *Server) deleteFile(f *file) any {
	l.kept -= len(f.text)
	l.files = slices.DeleteFunc(l.files, func(other *file) bool { return other == f })
	return m{"id": f.id, "object": "file", "deleted": true}
}
