package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// A snippet is a block of JavaScript or Python on a page; "js anthropic" is for a proxy before that.
type snippet struct {
	line               int
	language, provider string
	text               string
	prints             []string // <!-- prints: … -->, after it
}

var (
	block  = regexp.MustCompile("(?ms)^```(js|python)( \\w+)?\n(.*?)^```\n((?:<!-- prints: [^\n]* -->\n)*)")
	prints = regexp.MustCompile(`<!-- prints: (.*) -->`)
)

// snippets are those of a page of docs/.
func snippets(t *testing.T, page string) (all []snippet) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range block.FindAllSubmatchIndex(text, -1) {
		part := func(i int) string {
			if m[2*i] < 0 {
				return ""
			}
			return string(text[m[2*i]:m[2*i+1]])
		}
		s := snippet{line: 1 + strings.Count(string(text[:m[0]]), "\n"), language: part(1), provider: strings.TrimSpace(part(2)), text: part(3)}
		for _, p := range prints.FindAllStringSubmatch(part(4), -1) {
			s.prints = append(s.prints, p[1])
		}
		all = append(all, s)
	}
	return all
}

// TestPage: the programs of docs/proxy-sdks.md run as they are written, but for the port, and print what the page says.
func TestPage(t *testing.T) {
	t.Parallel()
	node, python := need.Node(t, "../node"), need.Python(t, "httpx", "aiohttp", "requests")
	all := snippets(t, "../../../docs/proxy-sdks.md")
	count := map[string]int{}
	proxies := map[string]*process{}
	for provider, preset := range map[string]string{"": "openai:tier1", "anthropic": "anthropic:start"} {
		server := serve(t, strings.Split(preset, ":")[0], "--first", "constant:0s")
		proxies[provider] = start(t, "proxy", "--to", server.url, "--preset", preset, "--listen", "127.0.0.1:0", "--admin", "off", "--log", "off")
	}
	for _, s := range all {
		count[s.language+s.provider]++
		p := proxies[s.provider]
		if p == nil || len(s.prints) == 0 {
			t.Errorf("line %d: nothing is said of %q, or of what it prints", s.line, s.provider)
			continue
		}
		text := strings.ReplaceAll(s.text, "http://127.0.0.1:7878", p.url)
		if text == s.text {
			t.Errorf("line %d does not speak with the proxy", s.line)
		}
		argv := []string{python, "-c", text}
		if s.language == "js" {
			argv = []string{node, "--input-type=module", "-e", text}
		}
		out, err := output(2*time.Minute, nil, "../node", nil, argv...)
		if err != nil {
			t.Errorf("line %d: %v", s.line, err)
		}
		for _, want := range s.prints {
			if !strings.Contains(out, want) {
				t.Errorf("line %d prints %q, want %q", s.line, out, want)
			}
		}
	}
	if count["js"] < 1 || count["jsanthropic"] < 1 || count["python"] < 3 {
		t.Errorf("%v: want one at least of each SDK, and three of Python", count)
	}
}

// TestPagesParse: what pages show of JavaScript and Python is that, also where it speaks of libraries that are not here.
func TestPagesParse(t *testing.T) {
	t.Parallel()
	node, python := need.Node(t, "../node"), need.Python(t, "ast")
	files, err := filepath.Glob("../../../docs/*.md")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d pages: %v", len(files), err)
	}
	const check = `import ast, sys; compile(sys.argv[1], "page", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)`
	n := 0
	for _, page := range append(files, "../../../README.md") {
		for _, s := range snippets(t, page) {
			n++
			argv := []string{python, "-c", check, s.text}
			if s.language == "js" {
				file := filepath.Join(t.TempDir(), "page.mjs")
				if err := os.WriteFile(file, []byte(s.text), 0o600); err != nil {
					t.Fatal(err)
				}
				argv = []string{node, "--check", file}
			}
			if _, err := output(time.Minute, nil, ".", nil, argv...); err != nil {
				t.Error(fmt.Errorf("%s:%d: %w", filepath.Base(page), s.line, err))
			}
		}
	}
	if n < 8 {
		t.Errorf("%d snippets", n)
	}
}
