package input

import (
	"cmp"
	"errors"
	"net/http"
)

// Maker makes requests from rows. Safe for concurrent use once it is set up.
type Maker struct {
	// URL, Body and ID are filled in for each row. If Body is nil, requests have no body; if ID is
	// nil, they have the id of the item.
	URL, Body, ID *Template
	// Operation, if not nil, makes the request in place of URL and Body.
	Operation *Operation
	// More names further columns, for templates that the sender of the request fills in.
	More []string
	// Shown names columns that results show, by their exact names.
	Shown []string
}

// Made is a request made from a row.
type Made struct {
	ID, URL string
	Body    []byte
	Header  http.Header // of Maker.Operation
	// More are the cells of Maker.More.
	More []Cell
}

// Check returns an error if the input is a table without one of the needed columns. The error
// concerns the whole input.
func (m *Maker) Check(r *Reader) error {
	c, err := r.columns()
	if c == nil || err != nil {
		return err
	}
	if len(c.names) == 0 {
		return nil // the input is empty
	}
	for _, ref := range m.refs() {
		if _, err := c.find(ref); err != nil {
			return &Unreadable{r.Errorf(1, 1, "{row.%s}: %v", ref, err)}
		}
	}
	for _, name := range m.Shown {
		if !c.shows(name) {
			return &Unreadable{r.Errorf(1, 1, "%v", c.hidden(name))}
		}
	}
	return nil
}

func (m *Maker) refs() []string {
	all := append([]string(nil), m.More...)
	if m.Operation != nil {
		all = append(all, m.Operation.Needs()...)
	}
	for _, t := range []*Template{m.URL, m.Body, m.ID} {
		all = append(all, t.Rows()...)
	}
	return all
}

// Make makes a request from an item. Its error has the place of the mistake in the input.
func (m *Maker) Make(r *Reader, i *Item) (made Made, err error) {
	made.ID = i.ID()
	if m.ID != nil {
		if made.ID, err = m.ID.fill(i.Row, ""); err != nil {
			return made, i.at(r.LineReader, "--id", err)
		}
	}
	if m.Operation != nil {
		id := made.ID
		if made, err = m.Operation.fill(i.Row); err != nil {
			return made, i.at(r.LineReader, "the operation", err)
		}
		made.ID = id
	} else if made.URL, err = m.URL.fill(i.Row, made.ID); err != nil {
		return made, i.at(r.LineReader, "the URL", err)
	}
	if m.Body != nil {
		body, err := m.Body.fill(i.Row, made.ID)
		if err != nil {
			return made, i.at(r.LineReader, "the body", err)
		}
		made.Body = []byte(body)
	}
	for _, ref := range m.More {
		c, err := i.Row.Get(ref)
		if err != nil {
			return made, i.at(r.LineReader, "{row."+ref+"}", err)
		}
		made.More = append(made.More, c)
	}
	return made, nil
}

// at adds to an error its place in the input.
func (i *Item) at(in *LineReader, what string, err error) error {
	if bad, ok := errors.AsType[*badCell](err); ok {
		return in.Errorf(cmp.Or(bad.cell.Line, i.Line), cmp.Or(bad.cell.Column, i.Column), "%s: %s", what, bad.reason)
	}
	return in.Errorf(i.Line, i.Column, "%s: %v", what, err)
}
