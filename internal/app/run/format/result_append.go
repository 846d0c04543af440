package format

import (
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Append appends the result as a line of JSON. The text is that of encoding/json without escapes
// for HTML, and with those of lineEnds. The line begins with id and state, for the rerun that reads it.
//
// The code is by hand for two reasons. A body may have 16 MiB, and encoding/json makes three more
// copies of it. And there may be 30,000 results a second.
func (r *Result) Append(b []byte) []byte {
	if r.Request != nil || r.Columns != nil {
		return append(b, LineOf(r)...) // this cannot fail, since both were read or written as JSON
	}
	if r.Body != nil { // room for escapes: in a body of JSON they take a fourth at most
		b = slices.Grow(b, len(*r.Body)+len(*r.Body)/4+512)
	}
	o := object{append(b, '{')}
	o.text("id", r.ID)
	o.text("state", r.State)
	o.integer("status", int64(r.Status), false)
	o.integer("attempts", int64(r.Attempts), true)
	o.float("waited_ms", r.WaitedMS, true)
	o.float("latency_ms", r.LatencyMS, false)
	if len(r.WaitedFor) > 0 {
		in := o.object("waited_for_ms")
		for _, name := range slices.Sorted(maps.Keys(r.WaitedFor)) {
			in.b = strconv.AppendInt(in.anyName(name), r.WaitedFor[name], 10)
		}
		o.b = append(in.b, '}')
	}
	o.some("key", r.Key)
	o.text("at", r.At)
	o.integer("refused", int64(r.Refused), false)
	o.texts("refused_at", r.RefusedAt)
	o.float("ceiling_sustained", r.Ceiling, false)
	o.truth("possible_repeat", r.PossibleRepeat)
	o.truth("late", r.Late)
	if r.Partly != nil {
		in := o.object("partly")
		in.integer("served", int64(r.Partly.Served), false)
		in.integer("refused", int64(r.Partly.Refused), false)
		o.b = append(in.b, '}')
	}
	o.integer("input_tokens", int64(r.InputTokens), false)
	o.integer("output_tokens", int64(r.OutputTokens), false)
	o.some("finish", r.Finish)
	o.truth("select_failed", r.SelectFailed)
	if len(r.Headers) > 0 {
		in := o.object("headers")
		var room [16]string
		names := slices.AppendSeq(room[:0], maps.Keys(r.Headers))
		slices.Sort(names)
		for _, name := range names {
			in.b = AppendText(in.anyName(name), r.Headers[name])
		}
		o.b = append(in.b, '}')
	}
	if r.Body != nil {
		o.text("body", *r.Body)
	}
	if len(r.BodyBase64) > 0 {
		o.b = append(base64.StdEncoding.AppendEncode(append(o.name("body_base64"), '"'), r.BodyBase64), '"')
	}
	o.truth("body_cut", r.BodyCut)
	if r.Row != nil {
		o.text("row", *r.Row)
	}
	o.some("file", r.File)
	o.integer("bytes", int64(r.Bytes), false)
	o.some("sha256", r.SHA256, "location", r.Location, "error", r.Error, "class", r.Class)
	o.integer("hidden", int64(r.Hidden), false)
	o.integer("page", int64(r.Page), false)
	o.some("next", r.Next)
	o.integer("round", int64(r.Round), false)
	o.some("request_digest", string(r.Digest))
	return append(o.b, '}', '\n')
}

// object is a JSON object that is being written, from its brace on. No value ends with such a brace.
type object struct{ b []byte }

// name begins a member of the object, by a name without characters that need an escape.
func (o *object) name(name string) []byte {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(append(append(o.b, '"'), name...), '"', ':')
	return o.b
}

// anyName is name for names of others.
func (o *object) anyName(name string) []byte {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(AppendText(o.b, name), ':')
	return o.b
}

// object begins a member that is an object itself. The caller ends it.
func (o *object) object(name string) object { return object{append(o.name(name), '{')} }

func (o *object) text(name, s string) { o.b = AppendText(o.name(name), s) }

// some writes texts that are not empty, each after its name.
func (o *object) some(namesAndTexts ...string) {
	for i := 0; i < len(namesAndTexts); i += 2 {
		if s := namesAndTexts[i+1]; s != "" {
			o.text(namesAndTexts[i], s)
		}
	}
}

// texts writes a list, unless it is empty.
func (o *object) texts(name string, all []string) {
	for i, s := range all {
		if i == 0 {
			o.b = append(o.name(name), '[')
		} else {
			o.b = append(o.b, ',')
		}
		o.b = AppendText(o.b, s)
	}
	if len(all) > 0 {
		o.b = append(o.b, ']')
	}
}

func (o *object) truth(name string, is bool) {
	if is {
		o.b = append(o.name(name), "true"...)
	}
}

func (o *object) integer(name string, n int64, zero bool) {
	if n != 0 || zero {
		o.b = strconv.AppendInt(o.name(name), n, 10)
	}
}

// float writes the values of milliseconds and Run.sustained, which need no exponent.
func (o *object) float(name string, f float64, zero bool) {
	if f != 0 || zero {
		o.b = strconv.AppendFloat(o.name(name), f, 'f', -1, 64)
	}
}

const hexDigits = "0123456789abcdef"

// AppendText appends s as a JSON string.
func AppendText(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0 // s is written up to here
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var rune rune
			rune, size = utf8.DecodeRuneInString(s[i:])
			none := rune == utf8.RuneError && size == 1
			if !none && rune != '\u0085' && rune != '\u2028' && rune != '\u2029' { // see lineEnds
				i += size
				continue
			}
			b = append(b, s[from:i]...)
			switch {
			case none:
				b = append(b, `\ufffd`...)
			case rune == '\u0085':
				b = append(b, `\u0085`...)
			default:
				b = append(b, '\\', 'u', '2', '0', '2', hexDigits[rune&0xf])
			}
		} else {
			b = append(b, s[from:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\b':
				b = append(b, `\b`...)
			case '\f':
				b = append(b, `\f`...)
			case '\n':
				b = append(b, `\n`...)
			case '\r':
				b = append(b, `\r`...)
			case '\t':
				b = append(b, `\t`...)
			default:
				b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
			}
		}
		i += size
		from = i
	}
	return append(append(b, s[from:]...), '"')
}
