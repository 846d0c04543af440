package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// --by turns the plan round: which part of the limits is enough, or what fits, and with how many keys.
func TestAPlanByATime(t *testing.T) {
	in := write(t, "in.txt", strings.Repeat("http://127.0.0.1:1/\n", 1200))
	batch := write(t, "b.jsonl", strings.Repeat(`{"custom_id":"ID","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-4o","max_tokens":100,"messages":[{"role":"user","content":"x"}]}}`+"\n", 1))
	github := write(t, "gh.txt", strings.Repeat("https://api.github.com/search/issues?q=a\n", 55)+
		strings.Repeat("https://api.github.com/user\n", 35))
	for _, c := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"--limit", "100/m", "--by", "19m30s", in}, "60 % of the limits are enough (--use 60%)", cli.ExitOK},                        // 20 windows of 100
		{[]string{"--limit", "100/m", "--by", "5m30s", in}, "it takes 2 times these limits, or 2 keys with limits of their own", cli.ExitOK}, // 6 windows
		{[]string{"--limit", "100/m", "--by", "5m30s", in}, "without, 600 of 1,200 fit, and 600 do not", cli.ExitOK},
		{[]string{"--limit", "2000/m", "--limit", "100/m", "--by", "11m30s", in}, "100 % of the limits are enough", cli.ExitOK},
		{[]string{"--limit", "100/m", "--use", "50%", "--by", "19m30s", in}, "60 % of the limits are enough (--use 60%)", cli.ExitOK},
		{[]string{"--limit", "100/m", "--use", "50%", "--by", "5m30s", in}, "without, 300 of 1,200 fit, and 900 do not", cli.ExitOK},
		{[]string{"--header", "Authorization: Bearer x", "--limit", "5000/h", "--limit", "search: 10/m", "--by", "2m30s", github}, "without, 65 of 90 fit, and 25 do not", cli.ExitOK}, // 3 windows of 10 of 55
		{[]string{"--limit", "none", "--by", "1h", in}, "there is no limit", cli.ExitOK},
		{[]string{"--preset", "openai:tier1", "--by", "1h", batch}, "1 % of the limits are enough", cli.ExitOK},
		{[]string{"--limit", "1/s", "--answer-time", "1h", "--by", "30m", in},
			"answers take 1h0m0s (--answer-time), and 30m0s are left (--by): none could come in time",
			cli.ExitConfig},
		{[]string{"--limit", "1/s", "--by", "soon", in}, `--by "soon", expected a time of day (09:00)`, cli.ExitUsage},
	} {
		code, stdout, stderr := paceline("", append([]string{"run", "--dry-run"}, c.args...)...)
		if said := strings.Join(strings.Fields(stdout+stderr), " "); code != c.code || !strings.Contains(said, c.want) {
			t.Errorf("%s: exit code %d, expected %q:\n%s%s", c.args[:len(c.args)-1], code, c.want, stdout, stderr)
		}
	}
	if code, _, stderr := paceline("", "run", "--limit", "1/s", "--by", "1h", in); code != cli.ExitUsage || !strings.Contains(stderr, "--until ends a run") {
		t.Errorf("without --dry-run: exit code %d, %s", code, stderr)
	}
}

// The plan describes in words all that limits alone cannot say.
func TestAPlanSaysWhatIsWaitedForFirst(t *testing.T) {
	dir := t.TempDir()
	in := write(t, "in.jsonl", `{"url":"http://127.0.0.1:1/"}`)
	for _, c := range []struct{ args, want, not string }{
		{"--limit 5000/h --limit 20/s --share sqlite:" + filepath.Join(dir, "new.db"), "lets nothing go for 7 s and 1 h first, since nobody can tell it from one that has lost them (--share). If no process has sent anything for so long, paceline share new STORE default lets the limits begin", ""},
		{"--limit 20/s --share-name orders --share sqlite:" + filepath.Join(dir, "new.db"), "for so long, paceline share new STORE orders lets the limits begin at once", ""},
		{"--limit 5000/h", "the limits let all of it go at once", "first"},
		{"--limit none", "there is no limit", "first"},
		{"--limit auto", "nobody knows the limit: the run finds it out", "there is no limit"},
	} {
		code, stdout, stderr := paceline("", append(append([]string{"run", "--dry-run"}, strings.Fields(c.args)...), in)...)
		said := strings.Join(strings.Fields(stdout), " ")
		if code != cli.ExitOK || !strings.Contains(said, c.want) || c.not != "" && strings.Contains(said, c.not) {
			t.Errorf("%s: exit code %d, expected %q and not %q:\n%s%s", c.args, code, c.want, c.not, stdout, stderr)
		}
	}
}

// A plan says which prompts are longer than their model takes, and where an account's own limits stand.
func TestAPlanNamesBoundsOfOthers(t *testing.T) {
	words := strings.Repeat("one two three four ", 3000)
	in := write(t, "in.csv", "id,text\na,Why?\nb,"+words+"\nc,"+words+"\n")
	args := []string{"run", "--dry-run", "--prompt-column", "text", "--id", "{row.id}", "--max-tokens", "9", in}
	const tooLong = `2 requests are longer than gpt-4 takes, and it refuses such a prompt: more than its 8,192 tokens, by the estimate. The first is "b" on line 3`
	const own = "your account may have others: any answer states them (x-ratelimit-limit-*)"
	for flags, want := range map[string][2]bool{
		"--model gpt-4 --preset openai:tier1":                          {true, true},
		"--model gpt-4o --preset openai:tier1":                         {false, true},
		"--model gpt-4o --preset openai:tier1 --tpm 30000":             {false, false},
		"--model gpt-4 --tpm 30000 --url http://h/v1/chat/completions": {true, false},
	} {
		code, stdout, stderr := paceline("", append(args, strings.Fields(flags)...)...)
		said := strings.Join(strings.Fields(stdout), " ")
		if is := [2]bool{strings.Contains(said, tooLong), strings.Contains(said, own)}; code != cli.ExitOK || is != want {
			t.Errorf("%s: exit code %d, %v, expected %v:\n%.3000s%s", flags, code, is, want, stdout, stderr)
		}
	}
}
