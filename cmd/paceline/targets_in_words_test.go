package main

import (
	"os"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
)

const targetsFile = `version: 1
upstreams:
  - path: /llm
    name: llm
    affinity: {by: prompt_cache_key, hold: 3s}
    header: {Authorization: "Bearer {key}"}
    targets:
      - {name: openai, to: "https://api.openai.com", preset: openai:tier2, keys: [{name: A, env: OPENAI_A}]}
      - name: eu
        to: https://eu.openai.azure.com
        path: "/openai/deployments/{model}{rest}?api-version=2025-01-01"
        models: {gpt-4o: prod-4o}
        limits: [240k tokens/m, {limit: 50USD/d, scope: all}]
        keys: [{name: B, env: AZURE_B}]
        header: {Api-Key: "{key}"}
        query: {nonce: "{nonce}"}
      - {name: small, to: "https://api.openai.com", models: {gpt-4o: gpt-4o-mini}, after: 20s, keys: [{name: C, env: OPENAI_A}]}
      - {name: local, to: "http://127.0.0.1:9000", after: never}
`

// What check says of targets: each with its limits, the order, and the traps.
func TestProxyCheckOfTargets(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("OPENAI_A", "sk-Zq81kdTTw0pXv27LmAa93bYcQ")
	t.Setenv("AZURE_B", "az-8wjx0FqR41nZtBvC65ukEs")
	if err := os.WriteFile("p.yaml", []byte(targetsFile), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := paceline("", "proxy", "check", "p.yaml")
	words := strings.Join(strings.Fields(out), " ")
	if code != cli.ExitOK {
		t.Fatal(code, stderr)
	}
	for _, want := range []string{
		"sends http://127.0.0.1:7878/llm/… to one of 4 targets (llm)",
		"target openai: https://api.openai.com/…", "(openai:tier2)", "key A: env OPENAI_A sets: Authorization (with the key)",
		"its path is /openai/deployments/{model}{rest}?api-version=2025-01-01 its name of the model gpt-4o is prod-4o only requests whose model is known go there",
		"limit: 50USD/d", "prices: a model whose price nobody knows", "key B: env AZURE_B sets: Api-Key (with the key), nonce with a number that rises with each key: one request of a key is in flight at a time",
		"a request goes to the target that may take it soonest, of openai and eu",
		"small takes a request 20s after it came, and at once where openai and eu are shut: away, without a key, or without room before its longest wait ends",
		"beware: above the limits of openai and eu every request waits 20s; a smaller after lets the surplus go sooner",
		"local takes a request where openai, eu and small are shut",
		"requests of a session, by prompt_cache_key, go to one target; they wait 3s for it",
		"beware: openai and small have one key at one host, and each counts by itself",
	} {
		if !strings.Contains(words, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "sk-") || strings.Contains(out, "az-8") {
		t.Error("it shows a key")
	}
	code, out, _ = paceline("", "proxy", "check", "p.yaml", "--route", "POST /llm/v1/chat/completions")
	if code != cli.ExitOK || !strings.Contains(out, "1 request") {
		t.Errorf("exit %d: %s", code, out)
	}
}
