package input

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/paceline-go/paceline/internal/text"
)

// option is an option of curl and its effect here.
type option struct {
	long  string
	short byte
	value bool // whether the option has a value
	// take adds the option to the request. If it is nil, the option is refused for the reason in
	// no. If no is empty, too, the option is ignored.
	take func(b *builder, v string) error
	// instead is the counterpart in paceline of an ignored option.
	instead, no string
}

var options = []option{
	{long: "request", short: 'X', value: true, take: func(b *builder, v string) error { b.method = v; return nil }},
	{long: "header", short: 'H', value: true, take: (*builder).addHeader},
	{long: "url", value: true, take: (*builder).addURL},
	{long: "data", short: 'd', value: true, take: (*builder).addData},
	{long: "data-ascii", value: true, take: (*builder).addData},
	{long: "data-raw", value: true, take: func(b *builder, v string) error { b.add(v); return nil }},
	{long: "data-binary", value: true, take: (*builder).addBinary},
	{long: "data-urlencode", value: true, take: (*builder).addEncoded},
	{long: "json", value: true, take: (*builder).addJSON},
	{long: "get", short: 'G', take: func(b *builder, _ string) error { b.get = true; return nil }},
	{long: "head", short: 'I', take: func(b *builder, _ string) error { b.head = true; return nil }},
	{long: "user", short: 'u', value: true, take: (*builder).addUser},
	{long: "oauth2-bearer", value: true,
		take: func(b *builder, v string) error { b.header.Set("Authorization", "Bearer "+v); return nil }},
	{long: "cookie", short: 'b', value: true, take: (*builder).addCookie},
	{long: "user-agent", short: 'A', value: true,
		take: func(b *builder, v string) error { b.header.Set("User-Agent", v); return nil }},
	{long: "referer", short: 'e', value: true,
		take: func(b *builder, v string) error { b.header.Set("Referer", strings.TrimSuffix(v, ";auto")); return nil }},
	{long: "globoff", short: 'g', take: func(b *builder, _ string) error { b.globoff = true; return nil }},

	{long: "compressed", instead: "answers may always be compressed"},
	{long: "location", short: 'L', instead: "--redirects N follows them"},
	{long: "location-trusted", instead: "--redirects N follows them"},
	{long: "max-redirs", value: true, instead: "--redirects N follows them"},
	{long: "proxy", short: 'x', value: true, instead: "HTTPS_PROXY in the environment names one"},
	{long: "noproxy", value: true, instead: "NO_PROXY in the environment names them"},
	{long: "max-time", short: 'm', value: true, instead: "--timeout is for all"},
	{long: "connect-timeout", value: true, instead: "--timeout is for all"},
	{long: "retry", value: true, instead: "--attempts is for all"},
	{long: "retry-delay", value: true, instead: "--backoff-base is for all"},
	{long: "retry-max-time", value: true, instead: "--ttl is for all"},
	{long: "retry-all-errors", instead: "--attempts is for all"},
	{long: "retry-connrefused", instead: "--attempts is for all"},
	{long: "limit-rate", value: true}, {long: "rate", value: true, instead: "--limit is for all"},
	{long: "output", short: 'o', value: true, instead: "--out has the results"},
	{long: "output-dir", value: true, instead: "--out has the results"},
	{long: "remote-name", short: 'O', instead: "--out has the results"},
	{long: "remote-header-name", short: 'J'},
	{long: "create-dirs"},
	{long: "dump-header", short: 'D', value: true, instead: "--keep-headers keeps them"},
	{long: "cookie-jar", short: 'c', value: true, instead: "cookies of answers are not kept"},
	{long: "write-out", short: 'w', value: true}, {long: "include", short: 'i', instead: "--keep-headers keeps them"},
	{long: "silent", short: 's'}, {long: "show-error", short: 'S'},
	{long: "verbose", short: 'v', instead: "--log-level debug"},
	{long: "fail", short: 'f'}, {long: "fail-with-body"}, {long: "fail-early"}, {long: "progress-bar", short: '#'},
	{long: "no-progress-meter"}, {long: "no-buffer", short: 'N'},
	{long: "http1.1"}, {long: "http2", instead: "requests go over HTTP/1.1"},
	{long: "http2-prior-knowledge", instead: "requests go over HTTP/1.1"},
	{long: "http3", instead: "requests go over HTTP/1.1"},
	{long: "http1.0", short: '0', instead: "requests go over HTTP/1.1"},
	{long: "ipv4", short: '4'}, {long: "ipv6", short: '6'}, {long: "tlsv1.2"}, {long: "tlsv1.3"},
	{long: "keepalive-time", value: true}, {long: "no-keepalive"},
	{long: "basic"}, {long: "path-as-is"}, {long: "parallel", short: 'Z', instead: "--concurrency is for all"},
	{long: "styled-output"}, {long: "stderr", value: true}, {long: "trace-ascii", value: true},

	{long: "insecure", short: 'k',
		no: "certificates are always checked, so that keys go to whom they are meant for; make the server's certificate " +
			"known to this machine"},
	{long: "form", short: 'F', value: true,
		no: "a multipart form is not made here; send its fields with -d, or its body as a line of JSON"},
	{long: "form-string", value: true,
		no: "a multipart form is not made here; send its fields with -d, or its body as a line of JSON"},
	{long: "upload-file", short: 'T', value: true, no: "expected the file as --data-binary @FILE with -X PUT"},
	{long: "next", short: ':', no: "expected each request as a command of its own"},
	{long: "config", short: 'K', value: true, no: "expected the options in the command"},
	{long: "netrc", short: 'n', no: "expected -u USER:PASSWORD"},
	{long: "cert", short: 'E', value: true, no: "client certificates are not sent"},
	{long: "key", value: true, no: "client certificates are not sent"},
	{long: "cacert", value: true, no: "make the server's certificate known to this machine (SSL_CERT_FILE)"},
	{long: "resolve", value: true, no: "names are resolved by this machine"},
	{long: "connect-to", value: true, no: "names are resolved by this machine"},
	{long: "unix-socket", value: true, no: "requests go over TCP"},
	{long: "interface", value: true, no: "the system chooses it"},
	{long: "digest", no: "only --basic is known"}, {long: "ntlm", no: "only --basic is known"},
	{long: "negotiate", no: "only --basic is known"},
	{long: "anyauth", no: "only --basic is known"}, {long: "aws-sigv4", value: true, no: "requests are not signed here"},
	{long: "range", short: 'r', value: true, no: "expected -H 'Range: bytes=…'"},
}

var (
	byLong  = map[string]*option{}
	byShort = map[byte]*option{}
	longs   []string
)

func init() {
	for i := range options {
		o := &options[i]
		byLong[o.long] = o
		longs = append(longs, "--"+o.long)
		if o.short != 0 {
			byShort[o.short] = o
		}
	}
}

// builder is a request while the options of its command are read.
type builder struct {
	c             *commands
	method        string
	url           string
	urlAt         word
	header        http.Header
	without       []string // header fields of curl itself that the command removes
	body          []byte
	hasBody, json bool
	get, head     bool
	globoff       bool
}

// call makes a request from the words of a command.
func (c *commands) call(words []word) (*Call, error) {
	b := &builder{c: c, header: http.Header{}}
	wrong := func(w word, format string, args ...any) error { return c.Errorf(w.line, w.column, format, args...) }
	onlyURLs := false
	for i := 1; i < len(words); i++ {
		w := words[i]
		take := func(o *option, name, rest string, attached bool) error {
			value := rest
			if o.value && !attached {
				if i++; i >= len(words) {
					return wrong(w, "%s without its value", name)
				}
				value = words[i].text
			}
			return b.take(o, name, value, words[min(i, len(words)-1)], wrong)
		}
		switch {
		case onlyURLs || !strings.HasPrefix(w.text, "-") || w.text == "-":
			b.urlAt = w
			if err := b.addURL(w.text); err != nil {
				return nil, wrong(w, "%v", err)
			}
		case w.text == "--":
			onlyURLs = true
		case strings.HasPrefix(w.text, "--"):
			o := byLong[w.text[2:]]
			if o == nil {
				name, _, _ := strings.Cut(w.text, "=")
				if byLong[name[2:]] != nil {
					return nil, wrong(w, "%s with = behind it, expected as curl has it: what belongs to it is a word of its own", name)
				}
				return nil, wrong(w, "unknown option %q of curl, expected one that says what to send%s", name,
					text.DidYouMean(name, longs))
			}
			if err := take(o, w.text, "", false); err != nil {
				return nil, err
			}
		default:
			for at := 1; at < len(w.text); at++ {
				name := "-" + w.text[at:at+1]
				o := byShort[w.text[at]]
				if o == nil {
					return nil, wrong(w, "unknown option %q of curl, expected one that says what to send", name)
				}
				rest := w.text[at+1:]
				if err := take(o, name, rest, rest != ""); err != nil {
					return nil, err
				}
				if o.value {
					break
				}
			}
		}
	}
	if b.url == "" {
		return nil, wrong(words[0], "there is no URL in the command, expected one")
	}
	return b.finish(wrong)
}

// take adds one option to the request. at is the word for errors: the one with the option's value.
func (b *builder) take(o *option, name, value string, at word, wrong func(word, string, ...any) error) error {
	switch {
	case o.no != "":
		if name != "--"+o.long {
			name += " (--" + o.long + ")"
		}
		return wrong(at, "%s cannot be followed: %s", name, o.no)
	case o.take == nil:
		if !b.c.told[o.long] && b.c.c.Ignored != nil {
			b.c.told[o.long] = true
			b.c.c.Ignored("--"+o.long, o.instead)
		}
		return nil
	}
	if o.long == "url" {
		b.urlAt = at
	}
	if err := o.take(b, value); err != nil {
		return wrong(at, "%s: %v", name, err)
	}
	return nil
}

// globs matches the parts of a URL that curl, or the shell before it, expands to several URLs.
var globs = regexp.MustCompile(`\{[^{}]*(,|\.\.)[^{}]*\}|\[[0-9a-zA-Z]+-[0-9a-zA-Z]+(:[0-9]+)?\]`)

func (b *builder) addURL(v string) error {
	if b.url != "" {
		return fmt.Errorf("a second URL, expected each in a command of its own")
	}
	if !strings.Contains(v, "://") {
		v = "http://" + v // curl assumes http for a URL without a scheme
	}
	b.url = v
	return nil
}

// WireFields are the header fields that control how a message is put on the wire. The sender of the
// request decides that, so they are not taken from a command. The map must not be changed.
var WireFields = map[string]bool{
	"Connection": true, "Content-Length": true, "Expect": true, "Keep-Alive": true, "Proxy-Connection": true, "Te": true,
	"Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

func (b *builder) addHeader(v string) error {
	name, value, colon := strings.Cut(v, ":")
	if strings.HasPrefix(v, "@") {
		return fmt.Errorf("a file of fields, expected 'Name: value'")
	}
	if strings.HasPrefix(v, ":") {
		return nil // a pseudo-header of HTTP/2, such as :authority or :path; the URL has its content
	}
	if !colon {
		empty, isEmpty := strings.CutSuffix(v, ";")
		if !isEmpty {
			return fmt.Errorf("a field without a colon, expected 'Name: value'")
		}
		name, value = empty, ""
	}
	name = http.CanonicalHeaderKey(strings.TrimSpace(name))
	value = strings.TrimSpace(value)
	switch {
	case WireFields[name], name == "Accept-Encoding": // a browser can read encodings that this program cannot
		b.c.ignore("-H "+name, "how it goes over the wire is decided here")
	case colon && value == "":
		b.without = append(b.without, name)
	default:
		b.header.Add(name, value)
	}
	return nil
}

func (c *commands) ignore(what, instead string) {
	if !c.told[what] && c.c.Ignored != nil {
		c.told[what] = true
		c.c.Ignored(what, instead)
	}
}

// add appends a piece to the body. Like curl it puts & between pieces, except those of --json.
func (b *builder) add(v string) {
	if b.hasBody && !b.json {
		b.body = append(b.body, '&')
	}
	b.body, b.hasBody = append(b.body, v...), true
}

// file reads the file of @FILE.
func (b *builder) file(name string) (string, error) {
	if name == "-" || name == "" || b.c.c.ReadFile == nil {
		return "", fmt.Errorf("expected the text itself, or @FILE")
	}
	text, err := b.c.c.ReadFile(name)
	return string(text), err
}

func (b *builder) addData(v string) error {
	if name, ok := strings.CutPrefix(v, "@"); ok {
		text, err := b.file(name)
		if err != nil {
			return err
		}
		v = strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace(text) // curl removes these from a file, too
	}
	b.add(v)
	return nil
}

func (b *builder) addBinary(v string) error {
	var err error
	if name, ok := strings.CutPrefix(v, "@"); ok {
		if v, err = b.file(name); err != nil {
			return err
		}
	}
	b.add(v)
	return nil
}

// addEncoded adds a value of --data-urlencode, in any of its forms: content, =content,
// name=content, @file and name@file.
func (b *builder) addEncoded(v string) error {
	name, content := "", v
	if i := strings.IndexAny(v, "=@"); i >= 0 {
		name, content = v[:i], v[i+1:]
		if v[i] == '@' {
			var err error
			if content, err = b.file(content); err != nil {
				return err
			}
		}
	}
	if content = url.QueryEscape(content); name != "" {
		content = name + "=" + content
	}
	b.add(content)
	return nil
}

func (b *builder) addJSON(v string) error {
	b.json = true
	return b.addBinary(v)
}

func (b *builder) addUser(v string) error {
	if !strings.Contains(v, ":") {
		return fmt.Errorf("a user without a password, expected USER:PASSWORD")
	}
	b.header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(v)))
	return nil
}

func (b *builder) addCookie(v string) error {
	if !strings.Contains(v, "=") {
		return fmt.Errorf("a file of cookies, expected name=value")
	}
	if was := b.header.Get("Cookie"); was != "" {
		v = was + "; " + v
	}
	b.header.Set("Cookie", v)
	return nil
}

// finish makes the request of all options, as curl would send it.
func (b *builder) finish(wrong func(word, string, ...any) error) (*Call, error) {
	if !b.globoff && globs.MatchString(b.url) {
		return nil, wrong(b.urlAt, "several URLs are made of what is in {} or [] here; expected one (with -g they are text)")
	}
	if b.get && b.hasBody {
		separator := "?"
		if strings.Contains(b.url, "?") {
			separator = "&"
		}
		at, _, _ := strings.Cut(b.url, "#")
		b.url, b.body, b.hasBody = at+separator+string(b.body), nil, false
	}
	call := &Call{Method: b.method, URL: b.url, URLColumn: b.urlAt.column, Header: b.header, Body: b.body}
	switch {
	case call.Method != "":
	case b.head:
		call.Method = http.MethodHead
	case b.hasBody:
		call.Method = http.MethodPost
	default:
		call.Method = http.MethodGet
	}
	add := func(name, value string) {
		if b.header[name] == nil && !containsFold(b.without, name) {
			b.header.Set(name, value)
		}
	}
	switch {
	case b.hasBody && b.json:
		add("Content-Type", "application/json")
		add("Accept", "application/json")
	case b.hasBody:
		add("Content-Type", "application/x-www-form-urlencoded")
	}
	if len(bytes.TrimSpace(call.Body)) == 0 && !b.hasBody {
		call.Body = nil
	}
	return call, nil
}

func containsFold(all []string, s string) bool {
	for _, a := range all {
		if strings.EqualFold(a, s) {
			return true
		}
	}
	return false
}
