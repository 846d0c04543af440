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
	// By are the columns or fields that part events. Each combination has windows of its own. Empty: all events
	// are together.
	By []string
	// Amount is the column or field with how much an event counts, a whole number. Where it is missing or empty, the
	// event does not count. Empty: each event counts as one.
	Amount string
	// Unit is the unit of numbers, one of Units. Empty: the name of the Column or Field says it, as in
	// checked_ns, or else the size of the first number.
	Unit string
	// Where are conditions that each event meets. Other lines are no events.
	Where []Condition
}

// Condition is on a column or a field: its text is Value, or with Not another one. A field that is missing
// has another one.
type Condition struct {
	Name, Value string
	Not         bool
}

// ParseCondition reads NAME=VALUE or NAME!=VALUE.
func ParseCondition(s string) (c Condition, err error) {
	name, value, ok := strings.Cut(s, "=")
	c.Name, c.Not = strings.CutSuffix(name, "!")
	if c.Value = value; !ok || c.Name == "" {
		return c, fmt.Errorf("%s: expected NAME=VALUE or NAME!=VALUE, such as status=200", shown(s))
	}
	return c, nil
}

// UnitOf is the unit of numbers; empty: their size shows it.
func (f *Format) UnitOf() string { return cmp.Or(f.Unit, unitIn(f.Column), unitIn(f.Field)) }

// Event is one event of a log.
type Event struct {
	Line int
	At   int64 // nanoseconds of Unix time
	Key  string
	// Amount is how much it counts, 0 or more.
	Amount int64
}

// mostAmount keeps sums of half a million amounts within an int64, and is exact in JSON.
const mostAmount = 1 << 44

// amountOf reads how much an event counts.
func amountOf(name, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > mostAmount {
		return 0, fmt.Errorf("%s %s: expected a whole number from 0 to %d", name, shown(text), int64(mostAmount))
	}
	return n, nil
}

// longestLine is the longest line in bytes.
const longestLine = 1 << 20

// Read calls f for each event, in the order of the log. It stops at the first error, of the log or
// of f. Its own errors name the line. It keeps one line in memory, for CSV one record.
func Read(r io.Reader, format Format, f func(Event) error) error {
	c := clock{unit: format.UnitOf()}
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
		e := Event{Line: number, Amount: 1}
		instant, counts, err := string(text), true, error(nil)
		if format.Field != "" {
			instant, counts, err = e.fields(text, format)
		}
		if err == nil && !counts {
			continue
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

// fields takes in a line of JSON. It returns the instant, and whether the line meets the conditions.
func (e *Event) fields(line []byte, format Format) (instant string, counts bool, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil || fields == nil {
		return "", false, fmt.Errorf("%s is no JSON object: expected one per line", shown(string(line)))
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
	for _, c := range format.Where {
		if is, err := value(c.Name); (err == nil && is == c.Value) == c.Not {
			return "", false, nil
		}
	}
	instant, err = value(format.Field)
	for i := 0; i < len(format.By) && err == nil; i++ {
		var part string
		part, err = value(format.By[i])
		e.part(i, part)
	}
	if err == nil && format.Amount != "" {
		text, _ := value(format.Amount) // a record leaves out an amount of 0
		e.Amount, err = amountOf(format.Amount, text)
	}
	return instant, true, err
}

// part adds a part to the key.
func (e *Event) part(i int, part string) {
	if i > 0 {
		part = e.Key + "," + part
	}
	e.Key = part
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
	names := slices.Concat([]string{format.Column}, format.By)
	if format.Amount != "" {
		names = append(names, format.Amount)
	}
	var columns []int                       // of names
	where := make([]int, len(format.Where)) // of the conditions
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
		if columns == nil {
			var header bool
			if columns, header, err = columnsOf(record, names, format.Where, where); err != nil {
				return atLine(line, err)
			}
			if header {
				continue
			}
		}
		if most := slices.Max(columns); most >= len(record) {
			return atLine(line, fmt.Errorf("%d columns: expected %d or more", len(record), most+1))
		}
		if slices.ContainsFunc(format.Where, func(c Condition) bool {
			at := where[slices.Index(format.Where, c)]
			return (at < len(record) && record[at] == c.Value) == c.Not
		}) {
			continue
		}
		e := Event{Line: line, Amount: 1}
		for i := range format.By {
			e.part(i, record[columns[1+i]])
		}
		if format.Amount != "" {
			if e.Amount, err = amountOf(format.Amount, strings.TrimSpace(record[columns[len(columns)-1]])); err != nil {
				return atLine(line, err)
			}
		}
		if e.At, err = c.read(strings.TrimSpace(record[columns[0]])); err != nil {
			return atLine(line, err)
		}
		if err := f(e); err != nil {
			return err
		}
	}
}

// columnsOf finds the columns of names, and those of the conditions. header says that the record has the names.
func columnsOf(record, names []string, where []Condition, at []int) (columns []int, header bool, err error) {
	for _, name := range names {
		index, named, err := column(record, name)
		if err != nil {
			return nil, false, err
		}
		columns, header = append(columns, index), header || named
	}
	for i := range where {
		if at[i], _, err = column(record, where[i].Name); err != nil {
			return nil, false, err
		}
	}
	return columns, header, nil
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
