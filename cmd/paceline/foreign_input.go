package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/input"
	"github.com/paceline-go/paceline/internal/text"
)

// givenFlags are the flags for inputs that were not written for paceline: lists of URLs, tables,
// arrays, curl commands.
type givenFlags struct {
	format, url, method, body, id string
	curl, noHeader                bool
	hasBody                       bool // also by --prompt-column

	api openAPIFlags
}

// isRows reports whether requests are made of rows.
func (g *givenFlags) isRows() bool { return g.url != "" || g.api.made != nil }

func (g *givenFlags) add(p *pflag.FlagSet) {
	p.StringVar(&g.format, "input-format", "auto",
		"form of the input, if it is not recognized: "+strings.Join(input.FormNames()[1:], ", "))
	p.BoolVar(&g.curl, "curl", false, "the input has curl commands, as copied from a browser: --input-format curl")
	p.StringVar(&g.url, "url", "",
		"address for each row of the input; {row.COLUMN} is filled in, escaped for its place")
	p.StringVar(&g.method, "method", "", "method of every row (default: GET, or POST with --body)")
	p.StringVar(&g.body, "body", "",
		"body of every row, or @FILE; {row.COLUMN} is filled in, escaped as JSON, a form or XML")
	p.StringVar(&g.id, "id", "", "id of every row, such as '{row.order}' (default: its line and a hash of it)")
	p.BoolVar(&g.noHeader, "no-header", false,
		"a table without a row of names: its columns are {row.1}, {row.2} and so on")
}

// flags returns the flags on the command line that only make sense for rows.
func (g *givenFlags) flags(cmd *cobra.Command) (given []string) {
	for _, name := range []string{"url", "method", "body", "id", "no-header"} {
		if cmd.Flag(name).Changed {
			given = append(given, "--"+name)
		}
	}
	return given
}

// form returns the form of the input as the flags state it.
func (g *givenFlags) form() (input.Form, error) {
	form, err := input.ParseForm(g.format)
	if err != nil {
		return 0, fmt.Errorf("--input-format %w%s", err, text.DidYouMean(g.format, input.FormNames()))
	}
	if g.curl && form != input.Unknown && form != input.Curl {
		return 0, fmt.Errorf("--curl with --input-format %s, expected one of them", form)
	}
	if g.curl {
		form = input.Curl
	}
	return form, nil
}

// recognize finds out the form of the input. Afterwards in is read from its beginning, as text in
// UTF-8.
func (g *givenFlags) recognize(in *runInput, wanted []string) (found input.Found, head []byte, err error) {
	form, err := g.form()
	if err != nil {
		return found, nil, cli.Usage(err)
	}
	if head, err = in.begin(); err != nil {
		return found, nil, cli.Exit(cli.ExitConfig, err)
	}
	if form == input.Unknown && in.isFile && input.IsAPI(head) {
		return found, nil, isAPI(in, "")
	}
	seen, err := input.Recognize(head, in.name, wanted)
	switch {
	case form == input.Curl && errors.Is(err, input.ErrForeign):
		return found, nil, in.unknown(err)
	case form != input.Unknown && form == seen.Form:
		return seen, head, nil
	case form != input.Unknown:
		return input.Found{Form: form, Comma: ','}, head, nil
	case err != nil:
		return found, nil, in.unknown(err)
	}
	return seen, head, nil
}

// unknown is the error for an input of unknown form.
func (in *runInput) unknown(err error) error {
	file := "FILE"
	if in.isFile {
		file = in.name
	}
	return cli.Exit(cli.ExitConfig, fmt.Errorf("%s: %s", in.name, strings.ReplaceAll(err.Error(), "FILE", file)))
}

// take configures a run for an input in a foreign form. taken is false if the input is lines of
// JSON for paceline, or a batch file.
func (f *runFlags) take(cmd *cobra.Command, in *runInput, c *run.Config) (taken bool, err error) {
	g := &f.given
	if f.llm.format != "auto" {
		if given := g.flags(cmd); len(given) > 0 || g.curl || g.format != "auto" {
			return false, cli.Usage(fmt.Errorf("--format %s is of whole requests, a line each; expected it without %s",
				f.llm.format, strings.Join(append(given, "--input-format"), ", ")))
		}
		head, err := in.begin()
		f.llm.takeArray(head)
		return false, err
	}
	if err := g.api.config(cmd); err != nil {
		return false, err
	}
	body, err := textOf("--body", g.body, int64(f.maxBody))
	if err != nil {
		return false, err
	}
	columns := append(format.Columns(c.Header...), format.Columns(c.Query...)...)
	found, head, err := g.recognize(in, append(columns, input.Wanted(g.url, body, g.id)...))
	if err != nil {
		return false, err
	}
	if found.Form == input.JSONL && !g.isRows() {
		return false, f.wholeLines(cmd, in, head, columns)
	}
	if found.Form == input.JSON && !g.isRows() {
		if len(g.flags(cmd)) == 0 && f.llm.takeArray(head) {
			return false, nil
		}
		if err := f.noRequests("objects", in, firstElement(head)); err != nil {
			return false, err
		}
	}
	told := map[string]bool{} // no notice comes twice: the input is read more than once
	isTable := slices.Contains([]input.Form{input.CSV, input.TSV, input.Lines}, found.Form)
	read := input.Config{Form: found.Form, Comma: found.Comma, NoHeader: g.noHeader, ReadFile: bounded(int64(f.maxBody)),
		Ignored: func(option, instead string) {
			text := fmt.Sprintf("passed over in the %s: %s",
				map[bool]string{true: "HAR", false: "curl commands"}[found.Form == input.HAR], option)
			if instead != "" {
				text += " (" + instead + ")"
			}
			if !told[text] {
				told[text] = true
				c.Notice(text)
			}
		}}
	if isTable && !g.isRows() {
		return false, g.needsURL(in, head, read, f)
	}
	var shown []string
	if c.Shape != nil {
		shown = c.Shape.RowColumns()
	}
	h, err := format.NewItems(format.ItemsConfig{
		Read: read, Shown: shown, URL: g.url, Operation: g.api.made,
		Body: body, HasBody: g.hasBody || cmd.Flag("body").Changed, NotEmpty: f.prompt.column,
		ID: g.id, Method: g.method, Header: c.Header, Query: c.Query,
	})
	if err == nil && isTable {
		err = h.Check(in.name, bytes.NewReader(head), int(f.maxLine))
	}
	if err != nil && f.prompt.column != "" {
		column := f.prompt.column
		err = errors.New(strings.ReplaceAll(err.Error(), "{row."+column+"}", "--prompt-column "+column))
	}
	if err != nil {
		return false, cli.Usage(err)
	}
	c.Format = h
	return true, nil
}

// textOf is the value of a flag, or the content of the file that it names: @FILE.
func textOf(flag, value string, most int64) (string, error) {
	name, isFile := strings.CutPrefix(value, "@")
	if !isFile {
		return value, nil
	}
	text, err := bounded(most)(name)
	if err != nil {
		return "", cli.Usage(fmt.Errorf("%s: %w", flag, err))
	}
	return strings.TrimLeft(string(text), "\ufeff"), nil
}

// bounded returns a function that reads a file, and refuses files of more than most bytes.
func bounded(most int64) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		text, err := io.ReadAll(io.LimitReader(file, most+1))
		if err == nil && int64(len(text)) > most {
			err = fmt.Errorf("%s has more than %d bytes, expected at most that (--max-body)", name, most)
		}
		return text, err
	}
}

// wholeLines returns an error that names the missing part, if the lines of JSON are not complete
// requests.
func (f *runFlags) wholeLines(cmd *cobra.Command, in *runInput, head []byte, columns []string) error {
	if given := f.given.flags(cmd); len(given) > 0 || len(columns) > 0 {
		if len(given) == 0 {
			given = []string{"{row." + columns[0] + "}"}
		}
		return cli.Usage(fmt.Errorf("%s is for rows, which have a --url; %s has lines of JSON, each a whole request",
			given[0], in.name))
	}
	return f.noRequests("lines of JSON", in, head)
}

// noRequests returns an error with a working command, if the first object of JSON is a row and no
// request. what names the content of the input, in the plural.
func (f *runFlags) noRequests(what string, in *runInput, head []byte) error {
	names := format.NoRequest(head)
	if len(names) == 0 || len(f.llm.bounded) > 0 {
		return nil
	}
	return cli.Usage(fmt.Errorf("%s has %s without a url: %s. Where each goes is for --url:\n  %s", in.name, what,
		strings.Join(names, ", "), f.given.command(in, f, names)))
}

// firstElement returns the first element of an array of JSON, on one line. It is empty if head does
// not have all of it.
func firstElement(head []byte) []byte {
	var element json.RawMessage
	var line bytes.Buffer
	array := json.NewDecoder(bytes.NewReader(bytes.TrimLeft(head, "\ufeff")))
	if _, err := array.Token(); err != nil || array.Decode(&element) != nil || json.Compact(&line, element) != nil {
		return nil
	}
	return line.Bytes()
}

// needsURL is the error for a table without --url. It suggests a command that would work.
func (g *givenFlags) needsURL(in *runInput, head []byte, read input.Config, f *runFlags) error {
	read.MaxLine = int(f.maxLine)
	names, err := input.New(in.name, bytes.NewReader(head), read).Columns()
	if err != nil {
		return cli.Exit(cli.ExitConfig, err)
	}
	if len(names) == 0 {
		return cli.Exit(cli.ExitConfig, fmt.Errorf("%s is empty, expected a table with a row of names first", in.name))
	}
	what := "a table"
	if read.Form == input.CSV && read.Comma != ',' {
		what = fmt.Sprintf("a table, separated by %q", read.Comma)
	}
	if read.NoHeader {
		for i := range names {
			names[i] = fmt.Sprint(i + 1)
		}
	}
	return cli.Usage(fmt.Errorf("%s is %s, with the columns %s. Where each row goes is for --url:\n  %s", in.name, what,
		strings.Join(names, ", "), g.command(in, f, names)))
}

// command suggests a command line for rows with these columns.
func (g *givenFlags) command(in *runInput, f *runFlags, names []string) string {
	name := in.name
	if !in.isFile {
		name = "-"
	}
	limits := ""
	for _, l := range f.limits {
		limits += " --limit " + l
		if strings.ContainsAny(l, " ") {
			limits = strings.TrimSuffix(limits, l) + "'" + l + "'"
		}
	}
	likely := names[0]
	for _, want := range []string{"url", "link", "href", "uri", "id", "key", "uuid", "email", "e-mail", "name"} {
		if i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, want) }); i >= 0 {
			likely = names[i]
			if slices.Index([]string{"url", "link", "href", "uri"}, want) >= 0 {
				return fmt.Sprintf("paceline run %s%s --url '{row.%s}'", name, limits, likely)
			}
			break
		}
	}
	return fmt.Sprintf("paceline run %s%s --url 'https://api.example.com/v1/things/{row.%s}'", name, limits, likely)
}

// sniffed is the size of the beginning by which an input is recognized, in bytes.
const sniffed = 64 << 10

// begin returns the beginning of the input; a later reader still gets it. Of a file it is sniffed
// bytes. Of a stream it is the first line and the bytes that arrived with it. Text in gzip or
// UTF-16 is decoded.
func (in *runInput) begin() (head []byte, err error) {
	defer func() { in.head = bytes.Clone(head) }()
	first := bufio.NewReaderSize(in.reader, sniffed)
	raw, _ := first.Peek(4)
	coding := input.CodingOf(raw)
	file, isFile := in.reader.(io.ReadSeeker)
	switch {
	case in.isFile && isFile:
		if coding != input.UTF8 {
			file = &decoded{file: file, coding: coding}
		}
		in.reader = file
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		head := make([]byte, sniffed)
		n, err := io.ReadFull(file, head)
		if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("%s: %w", in.name, err)
		}
		_, err = file.Seek(0, io.SeekStart)
		return head[:n], err
	case coding != input.UTF8:
		first = bufio.NewReaderSize(input.Decode(first, coding), sniffed)
	}
	in.reader = first
	for {
		head, _ := first.Peek(first.Buffered())
		if input.HasLine(head) {
			return head, nil
		}
		if _, err := first.Peek(len(head) + 1); err == io.EOF || errors.Is(err, bufio.ErrBufferFull) {
			return head, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", in.name, err)
		}
	}
}

// decoded is a file whose text needs decoding to UTF-8. It can only seek back to the beginning, and
// forward.
type decoded struct {
	file   io.ReadSeeker
	coding input.Coding
	text   io.Reader
}

func (d *decoded) Read(b []byte) (int, error) {
	if d.text == nil {
		d.text = input.Decode(d.file, d.coding)
	}
	return d.text.Read(b)
}

func (d *decoded) Seek(offset int64, whence int) (int64, error) {
	switch {
	case whence == io.SeekStart && offset == 0:
		d.text = nil
		return d.file.Seek(0, io.SeekStart)
	case whence == io.SeekCurrent && offset >= 0:
		return io.CopyN(io.Discard, d, offset)
	}
	return 0, errors.New("a file that is decoded cannot be read from there")
}

// unescaped makes text readable that the short form for prompts escapes. The first pair keeps an escaped backslash.
var unescaped = strings.NewReplacer(`\\`, `\\`, `\u007b`, "{")

// printFirst shows the first requests as they would be sent.
func printFirst(w io.Writer, all []format.PlanRequest) error {
	var b strings.Builder
	for _, q := range all {
		fmt.Fprintf(&b, "\nline %d is sent as (id %s)\n  %s %s\n", q.Line, q.ID, q.Method, q.URL)
		for _, h := range q.Headers {
			fmt.Fprintf(&b, "  %s\n", h)
		}
		const most = 2000
		if body := unescaped.Replace(q.Body); body != "" {
			if len(body) > most {
				body = strings.ToValidUTF8(body[:most], "") + "…"
			}
			fmt.Fprintf(&b, "\n  %s\n", strings.ReplaceAll(body, "\n", "\n  "))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
