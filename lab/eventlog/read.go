package eventlog

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Format says where an event has its instant. The zero Format is an instant per line. Empty lines
// are no events.
type Format struct {
	// Column is a column of CSV: its name in the first line, or its number, from 1, if the first
	// line is an event. Field is a field of JSON lines. One of them at most is set.
	Column, Field string
	// Key is the column or field that parts events. Each key has windows of its own. Empty: one key.
	Key string
	// Unit is the unit of numbers, one of Units. Empty: the name of the Column or Field says it, as in
	// checked_ns, or else the size of the first number.
	Unit string
}

// Event is one event of a log.
type Event struct {
	Line int
	At   int64 // nanoseconds of Unix time
	Key  string
}

// longestLine is the longest line in bytes.
const longestLine = 1 << 20

// Read calls f for each event, in the order of the log. It stops at the first error, of the log or
// of f. Its own errors name the line. It keeps one line in memory, for CSV one record.
func Read(r io.Reader, format Format, f func(Event) error) error {
	c := clock{unit: cmp.Or(format.Unit, unitIn(format.Column), unitIn(format.Field))}
	buffered := bufio.NewReader(r)
	if mark, _ := buffered.Peek(3); string(mark) == "\ufeff" {
		_, _ = buffered.Discard(3)
	}
	if format.Column != "" {
		return readCSV(buffered, format, &c, f)
	}
	lines := bufio.NewScanner(buffered)
	lines.Buffer(nil, longestLine)
	number := 0
	for lines.Scan() {
		number++
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		e := Event{Line: number}
		instant, err := string(text), error(nil)
		if format.Field != "" {
			instant, e.Key, err = fieldsOf(text, format)
		}
		if err == nil {
			e.At, err = c.read(instant)
		}
		if err != nil {
			return atLine(number, err)
		}
		if err := f(e); err != nil {
			return err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return atLine(number+1, errors.New("longer than 1 MiB"))
	} else if err != nil {
		return atLine(number+1, err)
	}
	return nil
}

func atLine(line int, err error) error { return fmt.Errorf("line %d: %w", line, err) }

// fieldsOf returns the instant and the key of a line of JSON.
func fieldsOf(line []byte, format Format) (instant, key string, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil || fields == nil {
		return "", "", fmt.Errorf("%s is no JSON object: expected one per line", shown(string(line)))
	}
	value := func(name string) (string, error) {
		raw, ok := fields[name]
		if !ok {
			return "", fmt.Errorf("no field %q: expected one of %s", name, someOf(slices.Sorted(maps.Keys(fields))))
		}
		var text string
		if json.Unmarshal(raw, &text) == nil && raw[0] == '"' {
			return text, nil
		}
		return string(raw), nil
	}
	if instant, err = value(format.Field); err == nil && format.Key != "" {
		key, err = value(format.Key)
	}
	return instant, key, err
}

// someOf lists the first names.
func someOf(names []string) string {
	quoted := make([]string, 0, 8)
	for _, name := range names {
		if len(quoted) == cap(quoted) {
			return strings.Join(quoted, ", ") + ", …"
		}
		quoted = append(quoted, shown(name))
	}
	return strings.Join(quoted, ", ")
}

func readCSV(r io.Reader, format Format, c *clock, f func(Event) error) error {
	records := csv.NewReader(r)
	records.FieldsPerRecord, records.ReuseRecord = -1, true
	instant, key := -1, -1
	for {
		record, err := records.Read()
		if err == io.EOF {
			return nil
		}
		if bad := (*csv.ParseError)(nil); errors.As(err, &bad) {
			return atLine(bad.Line, fmt.Errorf("no CSV: %w", bad.Err))
		} else if err != nil {
			return err
		}
		line, _ := records.FieldPos(0)
		if instant < 0 {
			var named, alsoNamed bool
			if instant, named, err = column(record, format.Column); err == nil && format.Key != "" {
				key, alsoNamed, err = column(record, format.Key)
			}
			if err != nil {
				return atLine(line, err)
			}
			if named || alsoNamed {
				continue
			}
		}
		e := Event{Line: line}
		if most := max(instant, key); most >= len(record) {
			return atLine(line, fmt.Errorf("%d columns: expected %d or more", len(record), most+1))
		}
		if key >= 0 {
			e.Key = record[key]
		}
		if e.At, err = c.read(strings.TrimSpace(record[instant])); err != nil {
			return atLine(line, err)
		}
		if err := f(e); err != nil {
			return err
		}
	}
}

// column returns the index of a column that a flag names, and whether it is a name of the header.
func column(header []string, name string) (index int, named bool, err error) {
	if n, err := strconv.Atoi(name); err == nil && n >= 1 { // before names: a cell of an event may be a number
		return n - 1, false, nil
	}
	if i := slices.Index(header, name); i >= 0 {
		return i, true, nil
	}
	return 0, false, fmt.Errorf("no column %q: expected one of %s, or a number from 1", name, someOf(header))
}
