package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc64"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

// tableColumn is a column of a table, and the field of a result or row with its values.
type tableColumn struct {
	name string
	kind columnKind
}

// columnKind is the type that all values of a column have.
type columnKind int

const (
	anyKind columnKind = iota // of a selection, whose expressions have values of any type
	boolKind
	intKind
	floatKind
	timeKind // a time as RFC 3339 has it
	jsonKind // an array or object
	textKind
)

// tableColumns returns the columns of a selection, or of whole results.
func tableColumns(shape *Shape) (all []tableColumn) {
	if shape != nil {
		for _, c := range shape.columns {
			all = append(all, tableColumn{name: c.name})
		}
		return all
	}
	t := reflect.TypeFor[format.Result]()
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		c := tableColumn{name, textKind}
		switch field.Type.Kind() {
		case reflect.Bool:
			c.kind = boolKind
		case reflect.Int, reflect.Int64:
			c.kind = intKind
		case reflect.Float64:
			c.kind = floatKind
		case reflect.Map, reflect.Slice, reflect.Pointer:
			c.kind = jsonKind
		}
		switch name {
		case "row", "class", "request": // of rows and dead letters
			continue
		case "at":
			c.kind = timeKind
		case "body", "body_base64":
			c.kind = textKind
		}
		all = append(all, c)
	}
	return all
}

// fields calls do with the columns of each row of a line, by name. A selection may make several rows of one answer.
func (f rows) fields(line []byte, do func(map[string]any) error) error {
	text, err := f.shown(line, false)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		var fields map[string]any
		if err := d.Decode(&fields); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := do(fields); err != nil {
			return err
		}
	}
}

var crcTable = crc64.MakeTable(crc64.ECMA)

// madeOf returns an error if the table in path was not made of the first pos bytes of from, which had before bytes.
func madeOf(path string, from io.ReaderAt, before, pos int64, sum uint64) error {
	h := crc64.New(crcTable)
	n, err := io.Copy(h, io.NewSectionReader(from, 0, min(pos, before)))
	if err == nil && (n != pos || h.Sum64() != sum) {
		err = fmt.Errorf("%s has rows that were not made of %s, which was changed: move the table away, and the same "+
			"command makes it anew",
			path, RowsOf(path))
	}
	return err
}

// cell returns a JSON value as a table has it. A number that is neither an integer of 64 bits
// nor exactly a float is a text, since numbers keep all their digits. Arrays and objects are JSON.
func cell(v any) any {
	switch v := v.(type) {
	case nil, bool, string, []byte:
		return v
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		n, err := v.Float64()
		if err != nil || significant(strconv.FormatFloat(n, 'e', -1, 64)) != significant(v.String()) {
			return v.String()
		}
		return n
	}
	return string(appendJSON(nil, v))
}

// significant returns the digits of a number without the zeros at both ends.
func significant(number string) string {
	digits, _, _ := strings.Cut(strings.ToLower(number), "e")
	return strings.Trim(strings.NewReplacer("-", "", ".", "").Replace(digits), "0")
}
