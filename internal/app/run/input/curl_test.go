package input

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

func TestCurl(t *testing.T) {
	files := map[string]string{"a.txt": "one\r\ntwo\n", "b.bin": "x\ny\n"}
	curl := Config{Form: Curl, ReadFile: func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, errors.New(name + " is not there")
	}}
	const form = "Content-Type: application/x-www-form-urlencoded"
	for text, want := range map[string]string{
		"curl https://a/x":                              "1: GET https://a/x []",
		"curl a.example/x":                              "1: GET http://a.example/x []",
		"curl -XPUT -H'A: b' --url https://a":           "1: PUT https://a [A: b]",
		"curl -sSL -X POST https://a -d x=1 -d 'y= 2'":  "1: POST https://a [" + form + "] x=1&y= 2",
		"curl https://a -d @a.txt --data-binary @b.bin": "1: POST https://a [" + form + "] onetwo&x\ny\n",
		"curl https://a --data-raw @a.txt":              "1: POST https://a [" + form + "] @a.txt",
		"curl 'https://a?z=0#top' -G -d x=1 --data-urlencode 'q=a b&c' --data-urlencode @a.txt":           "1: GET https://a?z=0&x=1&q=a+b%26c&one%0D%0Atwo%0A []",
		`curl https://a --json '{"a":' --json '1}'`:                                                       `1: POST https://a [Accept: application/json; Content-Type: application/json] {"a":1}`,
		`curl https://a -H 'Content-Type: text/csv' -d x`:                                                 "1: POST https://a [Content-Type: text/csv] x",
		`curl https://a -H 'Content-Type:' -d x`:                                                          "1: POST https://a [] x",
		"curl -I https://a":                                                                               "1: HEAD https://a []",
		"curl -u me:pass:word https://a":                                                                  "1: GET https://a [Authorization: Basic bWU6cGFzczp3b3Jk]",
		"curl --oauth2-bearer tok https://a -A me -e https://b":                                           "1: GET https://a [Authorization: Bearer tok; Referer: https://b; User-Agent: me]",
		"curl -b 'a=1; b=2' --cookie c=3 https://a":                                                       "1: GET https://a [Cookie: a=1; b=2; c=3]",
		"curl -H 'X-Empty;' -H ':authority: a' -H 'Connection: close' -H 'Accept-Encoding: br' https://a": "1: GET https://a [X-Empty: ]",
		"curl -g 'https://a/{b,c}[1-2]'":                                                                  "1: GET https://a/{b,c}[1-2] []",
		"curl -- https://a":                                                                               "1: GET https://a []",
		"curl https://a ;":                                                                                "1: GET https://a []",
		"curl https://a &":                                                                                "1: GET https://a []",
		"curl 'https://a/$x`y`\"\\'":                                                                      "1: GET https://a/$x`y`\"\\ []",
		`curl "https://a/\$x\"\a" -d "{row.a} {key}"`:                                                     `1: POST https://a/$x"\a [` + form + `] {row.a} {key}`,
		`curl $'https://a/\'\u0021\n\x41\101\ud83d\ude00\z'`:                                              "1: GET https://a/'!\nAA😀\\z []",
		// As Chrome has it, with a field over several lines, and comments around it.
		"# from the browser\n\ncurl 'https://a/' \\\n  -X 'POST' \\\n  -H 'accept: */*' \\\n  --data-raw $'{\"a\":\"it\\'s\"}' \\\n  --compressed ;\n": "3: POST https://a/ [Accept: */*; " + form + "] {\"a\":\"it's\"}",

		"curl":                                   "f:1:1: there is no URL in the command, expected one",
		"curl https://a https://b":               "f:1:16: a second URL, expected each in a command of its own",
		"curl https://a -k":                      "f:1:16: -k (--insecure) cannot be followed: certificates are always checked, so that keys go to whom they are meant for; make the server's certificate known to this machine",
		"curl https://a --insecure":              "f:1:16: --insecure cannot be followed: certificates are always checked, so that keys go to whom they are meant for; make the server's certificate known to this machine",
		"curl https://a \\\n -F a=b":             "f:2:5: -F (--form) cannot be followed: a multipart form is not made here; send its fields with -d, or its body as a line of JSON",
		"curl https://a --heder x":               `f:1:16: unknown option "--heder" of curl, expected one that says what to send; did you mean --header?`,
		"curl https://a --token=s3cret":          `f:1:16: unknown option "--token" of curl, expected one that says what to send`,
		"curl https://a -sQ":                     `f:1:16: unknown option "-Q" of curl, expected one that says what to send`,
		"curl https://a -H":                      "f:1:16: -H without its value",
		"curl https://a -H s3cret":               "f:1:19: -H: a field without a colon, expected 'Name: value'",
		"curl https://a -u s3cret":               "f:1:19: -u: a user without a password, expected USER:PASSWORD",
		"curl https://a -d @gone":                "f:1:19: -d: gone is not there",
		"curl https://a --data-binary @gone":     "f:1:30: --data-binary: gone is not there",
		"curl https://a --data-urlencode @gone":  "f:1:33: --data-urlencode: gone is not there",
		"curl https://a/{b,c}":                   "f:1:6: several URLs are made of what is in {} or [] here; expected one (with -g they are text)",
		"curl https://a/{1..3}":                  "f:1:6: several URLs are made of what is in {} or [] here; expected one (with -g they are text)",
		"curl https://a --user=me:s3cret":        "f:1:16: --user with = behind it, expected as curl has it: what belongs to it is a word of its own",
		"curl https://a | jq .":                  "f:1:1: more than a command (a pipe, &&, a loop), expected a curl command alone: answers are written by paceline, see --out",
		"curl https://a > x":                     "f:1:16: a redirection, expected none: answers are written by paceline, see --out",
		"curl https://a; curl https://b":         "f:1:17: a second command on the line, expected each on a line of its own",
		"A=1 curl https://a":                     "f:1:1: a variable is set, expected a curl command",
		"curl -H \"A: $TOKEN\" https://a":        "f:1:13: the variable $TOKEN: nothing is filled in in curl commands; write what it stands for, or leave the field out and give it with --header 'Name: {key}' and --key-env",
		"curl $(cat s3cret)":                     "f:1:6: something for the shell to find out: nothing is filled in in curl commands; write what it stands for, or leave the field out and give it with --header 'Name: {key}' and --key-env",
		"wget https://a":                         "f:1:1: wget, expected a curl command",
		"curl https://a 'x":                      "f:1:16: reached EOF without closing quote `'`, expected a curl command as bash reads it",
		"curl ^\"https://a^\" ^\n -H ^\"A: b^\"": `f:1:6: a command for cmd.exe, with ^ before its quotes; expected it as for bash: in the browser, "Copy as cURL (bash)"`,
	} {
		if got := strings.Join(read(text, curl), "\n"); !strings.HasPrefix(got, want) || got != want && !strings.Contains(text, "^") {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
		if got := strings.Join(read(text, curl), "\n"); strings.Contains(want, "f:") && strings.Contains(got, "s3cret") {
			t.Errorf("%s shows a secret: %s", text, got)
		}
	}
	// A mistake in one command does not affect the next.
	check(t, curl, "curl https://a -k\ncurl https://b \\\n  -d 'x\ny'\n\ncurl https://c\n", "f:1:16: -k (--insecure) cannot be followed: certificates are always checked, so that keys go to whom they are meant for; make the server's certificate known to this machine",
		"2: POST https://b ["+form+"] x\ny", "6: GET https://c []")
	check(t, curl, "curl $'https://a/\\''\ncurl \"https://b/\\\"'\"\ncurl https://c/d#e'f'\n", "1: GET https://a/' []", `2: GET https://b/"' []`, "3: GET https://c/d#ef []")
	curl.MaxLine = 30
	check(t, curl, "curl https://a\ncurl 'https://b\n"+strings.Repeat("curl https://c\n", 3), "1: GET https://a []",
		"end: f:2:1: the command that begins here goes on for 30 bytes, expected at most that (--max-line): is a quote not closed?")
}

// Each ignored option is reported once.
func TestCurlIgnores(t *testing.T) {
	var told []string
	read("curl -L -s https://a\ncurl --location https://b -H 'Connection: close'\n", Config{Form: Curl, Ignored: func(option, instead string) { told = append(told, option+": "+instead) }})
	if got := strings.Join(told, "; "); got != "--location: --redirects N follows them; --silent: ; -H Connection: how it goes over the wire is decided here" {
		t.Error(got)
	}
}

// A file that a command names is read only where files are allowed. Elsewhere the error asks for
// the text, and so it does for a file without a name or for standard input.
func TestCurlReadsNoFile(t *testing.T) {
	files := func(string) ([]byte, error) { return []byte("read"), nil }
	for _, c := range []struct {
		text  string
		files func(string) ([]byte, error)
	}{{"curl https://a -d @a.txt", nil}, {"curl https://a -d @-", files}, {"curl https://a -d @", files}} {
		if got := read(c.text+"\n", Config{Form: Curl, ReadFile: c.files}); len(got) != 1 || !strings.Contains(got[0], "expected the text itself, or @FILE") {
			t.Errorf("%s: %q", c.text, got)
		}
	}
}

// The lines of one command are those that the shell's parser finds in the whole file.
func FuzzCommands(f *testing.F) {
	for _, s := range []string{"curl a\ncurl 'b\n c' \\\n -d $'x\\'y'\n", "curl \"a\\\"b\nc\"\n# it's\ncurl d#e 'f'", "curl a\\\\\ncurl b", "curl a # \\\ncurl b", "curl $'\\u00e9\\x4'", "curl a;#'\ncurl b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := New("f", strings.NewReader(text), Config{Form: Curl, MaxLine: 1 << 16})
		c := r.items.(*commands)
		var got []int
		for {
			first, err := c.command()
			if err == io.EOF {
				break
			}
			if _, one := errors.AsType[*Error](err); one {
				return
			} else if err != nil {
				return
			}
			words, err := c.words(first)
			if err != nil {
				return // a text that is no command alone may be split anywhere
			}
			if len(words) > 0 {
				got = append(got, words[0].line)
				_, _ = c.call(words)
			}
		}
		file, err := syntax.NewParser().Parse(bytes.NewReader([]byte(strings.TrimLeft(text, "\ufeff"))), "")
		// bash ends a comment with its line; the parser goes on after a backslash.
		if err != nil || strings.ContainsAny(strings.TrimLeft(text, "\ufeff"), "\r\ufeff") || strings.HasSuffix(text, `\`) || strings.Contains(text, "#") && strings.Contains(text, "\\\n") {
			return
		}
		var want []int
		for _, s := range file.Stmts {
			want = append(want, int(s.Pos().Line()))
		}
		if len(got) != len(want) {
			t.Fatalf("%q: commands on lines %v, want %v", text, got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%q: commands on lines %v, want %v", text, got, want)
			}
		}
	})
}
