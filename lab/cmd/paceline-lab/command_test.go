package main

import (
	"context"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

func TestCommandLine(t *testing.T) {
	race.Without(t)
	t.Parallel()
	for _, c := range []struct {
		args string
		code int
		says string // on stderr, or on stdout if the code is 0
	}{
		{"", cli.ExitOK, "Commands:"},
		{"version", cli.ExitOK, "paceline-lab "},
		{"nix", cli.ExitUsage, `unknown command "nix" for "paceline-lab"`},
		{"bench proof", cli.ExitUsage, "did you mean paceline-lab proof?"},
		{"bench", cli.ExitOK, "exchange"},
		{"bench nix", cli.ExitUsage, `unknown command "nix" for "paceline-lab bench"`},
		{"bench exchange x", cli.ExitUsage, `takes no argument, and there is "x"`},
		{"bench exchange --nix", cli.ExitUsage, "unknown flag: --nix"},
		{"bench exchange --seeds 0", cli.ExitUsage, "must be positive"},
		{"bench exchange --seeds x", cli.ExitUsage, "--seeds"},
		{"bench exchange --row nix", cli.ExitUsage, `--row "nix"`},
		{"bench exchange --latency nix", cli.ExitUsage, `"nix" is no law`},
		{"bench exchange --latency recorded:gone.txt", cli.ExitUsage, "gone.txt"},
		{"bench exchange -o xml", cli.ExitUsage, `--output "xml"`},
		{"bench exchange --keys 0", cli.ExitUsage, "--keys 0 is not 1 or more"},
		{"bench exchange --keys 1000000 --limit 20/s", cli.ExitUsage, "1000000 keys with 20 requests each"},
		{"bench exchange --limit 20", cli.ExitUsage, `--limit: "20" does not say per what time`},
		{"bench exchange --ttl 0s", cli.ExitUsage, "--ttl 0s is not positive"},
		{"bench exchange --retries -1", cli.ExitUsage, "--retries -1"},
		{"bench exchange --ban-after -1", cli.ExitUsage, "--ban-after -1"},
		{"sim throttle --chart rates.txt", cli.ExitUsage, "--chart: "},
		{"bench exchange --virtual --row lease/saturating/nonce --seeds 1 --seconds 20", cli.ExitOK, "0 in every row: 429, bad nonce, banned"},
		{"bench exchange --virtual --row circular/saturating --seeds 1 --seconds 60 --ban-after 0 --keys 2 --limit 10/500ms --ttl 3s", cli.ExitOK,
			"2 keys × 10 per 500ms (refused when now − t[k−10] ≤ 500 ms, no ban),\nlatency uniform:0-50ms each way, TTL 3s"},
		{"bench exchange --virtual --row graveyard --seeds 1 --seconds 20 --retries 0 -o json", cli.ExitOK, "\"dlq, retries: 0\""},
		{"bench exchange --virtual --row keys --seeds 1 --seconds 5 -o json", cli.ExitOK, `"percent_of_ceiling"`},
		{"proof --requests 1.5", cli.ExitUsage, "want a whole number from 1 to 1e12"},
		{"proof -o xml", cli.ExitUsage, `--output "xml"`},
		{"bench llm x", cli.ExitUsage, `takes no argument, and there is "x"`},
		{"bench llm -o xml", cli.ExitUsage, `--output "xml"`},
		{"bench llm --arrivals nix", cli.ExitUsage, `--arrivals "nix"`},
		{"bench llm --prompts 0", cli.ExitUsage, "--prompts 0"},
		{"bench llm --seeds 0", cli.ExitUsage, "--seeds 0"},
		{"bench llm --arrivals uniform --prompts 200 --seeds 1", cli.ExitOK, "uniform   seed-gates "},
		{"bench llm --prompts 100 --seeds 1 -o json", cli.ExitOK, `"percent_of_ideal"`},
		{"proof --requests 3e4", cli.ExitOK, "planted faults found"},
		{"proof --requests 3e4 -o json", cli.ExitOK, `"percent_of_ceiling"`},
		{"sim", cli.ExitUsage, "want one scenario file"},
		{"sim gone.yaml", cli.ExitConfig, "gone.yaml"},
		{"sim gone.yaml -o xml", cli.ExitUsage, `--output "xml"`},
		{"sim throttle x", cli.ExitUsage, `takes no argument, and there is "x"`},
		{"sim throttle --seeds 0", cli.ExitUsage, "--seeds 0 is not from 1"},
		{"sim throttle --seeds 9-3", cli.ExitUsage, "--seeds 9-3 is not from 1"},
		{"sim throttle --seeds few", cli.ExitUsage, `--seeds "few": want how many, such as 20, or seeds such as 1001-1020`},
		{"sim throttle --check", cli.ExitUsage, "--check is for --aims"},
		{"sim throttle --aims --chart x.svg", cli.ExitUsage, "--aims and --chart"},
		{"sim throttle --aims --strategies null,fair", cli.ExitUsage, "--aims measures one strategy"},
		{"sim throttle --aims --only nothing", cli.ExitUsage, `--only "nothing": no scenario with an aim`},
		{"sim throttle --aims --only threads-2x5 --strategies exponential-backoff --seeds 1-2", cli.ExitOK, "MISSED"},
		{"sim throttle --aims --only threads-2x5 --strategies exponential-backoff --seeds 1-2 --check", cli.ExitFailure, "aims are missed: threads-2x5: longest sleep s; threads-2x5: refused %"},
		{"sim throttle --aims --only threads-2x5 --strategies fair --seeds 1001-1002 -o json", cli.ExitOK, `"first_seed": 1001`},
		{"sim throttle --strategies nix", cli.ExitUsage, `--strategies: strategy "nix" is none of null, retry-only`},
		{"sim throttle --strategies retry-only --only nix", cli.ExitUsage, `--only "nix": no scenario's name begins with it: there are cold-1, cold-2`},
		{"sim throttle -o xml", cli.ExitUsage, `--output "xml"`},
		{"sim throttle --strategies retry-only,null --only clear-1s --seeds 2", cli.ExitOK, "virtual hours"},
	} {
		var out, errs strings.Builder
		code := execute(context.Background(), strings.Fields(c.args), strings.NewReader(""), &out, &errs)
		text := &errs
		if c.code == cli.ExitOK {
			text = &out
		}
		if code != c.code || !strings.Contains(squeezed(text.String()), squeezed(c.says)) {
			t.Errorf("paceline-lab %s: exit %d, want %d with %q:\n%s", c.args, code, c.code, c.says, text)
		}
	}
}

func TestFlagsFromTheEnvironment(t *testing.T) {
	race.Without(t)
	run := func(args string) (int, string) {
		var out, errs strings.Builder
		code := execute(context.Background(), strings.Fields(args), strings.NewReader(""), &out, &errs)
		return code, out.String() + errs.String()
	}
	const virtual = "bench exchange --virtual --row lease --seeds 1 --seconds 5"
	t.Setenv("PACELINE_OUTPUT", "json")
	if code, text := run(virtual); code != cli.ExitOK || !strings.HasPrefix(text, "{") {
		t.Errorf("PACELINE_OUTPUT=json: exit %d\n%s", code, text)
	}
	if code, text := run(virtual + " -o text"); code != cli.ExitOK || !strings.HasPrefix(text, "exchange: ") {
		t.Errorf("a flag does not win over the environment: exit %d\n%s", code, text)
	}
	t.Setenv("PACELINE_KEYS", "soon")
	if code, text := run(virtual); code != cli.ExitUsage || !strings.Contains(text, "PACELINE_KEYS") {
		t.Errorf("PACELINE_KEYS=soon: exit %d\n%s", code, text)
	}
}
