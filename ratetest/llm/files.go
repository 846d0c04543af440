package llm

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"

	"github.com/paceline-go/paceline/ratetest/internal/model"
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
	{"GET /v1/files/{}", (*Server).oneFile},
	{"GET /v1/files/{}/content", (*Server).fileContent}, {"DELETE /v1/files/{}", (*Server).deleteFile},
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
		return nil, &problem{kind: badRequest, Problem: model.Problem{Param: "purpose", Missing: f.purpose == "",
			Text: fmt.Sprintf("'%.50s' is not one of ['%s'] - 'purpose'", f.purpose, strings.Join(purposes, "', '"))}}
	case f.text == nil:
		return nil, &problem{kind: badRequest, Problem: model.Problem{Param: "file", Missing: true,
			Text: "'file' is a required property"}}
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

func noFile(id string) *problem {
	return wrong(notThere, fmt.Sprintf("No such File object: %.100s", id))
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

func (l *Server) oneFile(q *freeCall) (any, *problem) {
	if f := l.fileOf(q, q.parts[0]); f != nil {
		return f.show(), nil
	}
	return nil, noFile(q.parts[0])
}

func (l *Server) fileContent(q *freeCall) (any, *problem) {
	if f := l.fileOf(q, q.parts[0]); f != nil {
		return raw(f.text), nil
	}
	return nil, noFile(q.parts[0])
}

func (l *Server) deleteFile(q *freeCall) (any, *problem) {
	f := l.fileOf(q, q.parts[0])
	if f == nil {
		return nil, noFile(q.parts[0])
	}
	l.kept -= len(f.text)
	l.files = slices.DeleteFunc(l.files, func(other *file) bool { return other == f })
	return m{"id": f.id, "object": "file", "deleted": true}, nil
}
