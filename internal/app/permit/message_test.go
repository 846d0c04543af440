package permit

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const anID = `"AAAAAAAAAAAAAAAAAAAAAAAA"`

var goodAcquires = []string{
	`{"limit":"orders"}`,
	` { "limit" : "orders" , "n" : 1000 , "max_wait" : 0.25 } `,
	`{"limit":"a.b_c:d-e","client":"nächtlich","cost":{"tokens":900,"requests":0}}`,
	`{"limit":"orders","settle":[{"id":` + anID + `,"result":"accepted","actual":{"tokens":12}},{"ids":[` + anID + `],"status":429,` +
		`"header":{"Retry-After":"2","X":["a","b"]},"body":"\u00e4\n","took_ms":1.5},{"id":"x","result":"refused","retry_after":1e1}]}`,
}

// badAcquires have the field and the expectation that the error names.
var badAcquires = [][2]string{
	{``, "the end, expected an object"},
	{`[]`, "an array, expected an object"},
	{`null`, "null, expected an object"},
	{`{}`, "limit: the field is missing"},
	{`{"limit":7}`, "limit: a number, expected a string"},
	{`{"limit":""}`, `limit: "", expected a name`},
	{`{"limit":"or ders"}`, `limit: "or ders", expected a name`},
	{`{"limit":"orders","limit":"mail"}`, "limit: the field is there twice"},
	{`{"limit":"orders","N":1}`, "N: unknown field, expected one of limit, client, n, cost, max_wait, settle"},
	{`{"limit":"orders","n":1001}`, "n: 1001, expected a whole number from 1 to 1000"},
	{`{"limit":"orders","n":1.5}`, "n: 1.5, expected a whole number"},
	{`{"limit":"orders","n":"1"}`, "n: a string, expected a number"},
	{`{"limit":"orders","n":01}`, `n: "01" is no number`},
	{`{"limit":"orders","max_wait":-1}`, "max_wait: -1, expected a number from 0"},
	{`{"limit":"orders","max_wait":null}`, "max_wait: null, expected a number"},
	{`{"limit":"orders","client":"a\u0007"}`, "client: "},
	{`{"limit":"orders","client":"a` + "\x01" + `"}`, "client: a control character"},
	{`{"limit":"orders","client":"` + "\xff" + `"}`, "client: a string with a wrong escape"},
	{`{"limit":"orders","cost":{"token":1}}`, "cost.token: unknown field, expected one of requests, weight"},
	{`{"limit":"orders","cost":{"tokens":-1}}`, "cost.tokens: -1, expected a whole number from 0"},
	{`{"limit":"orders","cost":{"requests":0}}`, "cost: it is empty"},
	{`{"limit":"orders","settle":{}}`, "settle: an object, expected an array"},
	{`{"limit":"orders","settle":[{"id":` + anID + `}]}`, "settle[0]: expected one of result and status"},
	{`{"limit":"orders","settle":[{"result":"accepted"}]}`, "settle[0]: expected one of id and ids"},
	{`{"limit":"orders","settle":[{"id":` + anID + `,"result":"accepted"},{"id":` + anID + `,"result":"ok"}]}`,
		`settle[1].result: "ok", expected accepted, refused, failed, unsent, unknown`},
	{`{"limit":"orders","settle":[{"id":` + anID + `,"status":99}]}`, "settle[0].status: 99, expected a whole number from 100"},
	{`{"limit":"orders","settle":[{"id":` + anID + `,"status":200,"result":"failed"}]}`, "settle[0]: expected one of result and status"},
	{`{"limit":"orders","settle":[{"id":` + anID + `,"result":"failed","body":""}]}`, "go with a status"},
	{`{"limit":"orders","settle":[{"id":` + anID + `,"result":"accepted","retry_after":1}]}`, "settle[0].retry_after: expected only beside"},
	{`{"limit":"orders","settle":[{"id":` + anID + `,"status":200,"header":{"A":[1]}}]}`, "settle[0].header.A[0]: a number, expected a string"},
	{`{"limit":"orders"} x`, "no JSON after the message, expected its end"},
	{`{"limit":"orders"`, "limit: the end after it, expected , or }"},
	{`{"limit":"orders",}`, "no JSON, expected the name of a field"},
	{`{"limit" "orders"}`, "limit: a string, expected : and a value"},
	{`{"limit":"orders`, "limit: a string without an end"},
}

func schemaOf(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("permit.json", doc); err != nil {
		t.Fatal(err)
	}
	all, err := c.Compile("permit.json")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Errors name the field and what was expected, and the schema refuses the same, where it can.
func TestMessages(t *testing.T) {
	schema := schemaOf(t)
	says := func(b string) error {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(b))
		if err != nil {
			return err
		}
		return schema.Validate(v)
	}
	for _, good := range goodAcquires {
		if _, err := parseAcquire([]byte(good)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
		if err := says(good); err != nil {
			t.Errorf("the schema refuses %s: %v", good, err)
		}
	}
	// A schema knows nothing of fields that come twice, of fields that go together, and of what can be
	// printed.
	beyond := []string{"twice", "go with a status", "only beside", "client: ", "cost: it is empty"}
	for _, bad := range badAcquires {
		_, err := parseAcquire([]byte(bad[0]))
		if err == nil || !strings.Contains(err.Error(), bad[1]) {
			t.Errorf("%s: %v, want %s", bad[0], err, bad[1])
		}
		is := func(text string) bool { return strings.HasPrefix(bad[1], text) || strings.HasSuffix(bad[1], text) }
		can := true
		for _, text := range beyond {
			can = can && !is(text) && !strings.Contains(bad[1], text)
		}
		if can && says(bad[0]) == nil {
			t.Errorf("the schema takes %s", bad[0])
		}
	}
}

// Bounds of a call hold, whatever the form.
func TestMessageBounds(t *testing.T) {
	ids := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat(anID+",", n), ",") + "]" }
	if all, _, err := parseRenew([]byte(ids(1000))); err != nil || len(all) != 1000 {
		t.Errorf("%d, %v", len(all), err)
	}
	if _, _, err := parseRenew([]byte(ids(1001))); err == nil || !strings.Contains(err.Error(), "more than 1000") {
		t.Errorf("1001 ids: %v", err)
	}
	half := `{"ids":` + ids(501) + `,"result":"accepted"}`
	if _, err := parseSettle([]byte("[" + half + "]")); err != nil {
		t.Error(err)
	}
	if _, err := parseSettle([]byte("[" + half + "," + half + "]")); err == nil || !strings.Contains(err.Error(), "[1]: more than 1000 ids") {
		t.Errorf("1002 ids: %v", err)
	}
}

// FuzzMessages: what is accepted is JSON, and the schema takes it. Nothing panics.
func FuzzMessages(f *testing.F) {
	for _, good := range goodAcquires {
		f.Add([]byte(good))
	}
	for _, bad := range badAcquires {
		f.Add([]byte(bad[0]))
	}
	schema := schemaOf(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = parseSettle(b)
		_, _, _ = parseRenew(b)
		m, err := parseAcquire(b)
		if err != nil {
			if err.Error() == "" {
				t.Errorf("%q is refused without a reason", b)
			}
			return
		}
		if !json.Valid(b) {
			t.Fatalf("%q is accepted, and is no JSON", b)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err == nil {
			err = schema.Validate(v)
		}
		if err != nil {
			t.Errorf("%q is accepted, and the schema says %v", b, err)
		}
		if m.limit == "" || m.n < 1 || m.n > mostPermits || m.cost.Negative() || m.maxWait < 0 {
			t.Errorf("%q: %+v", b, m)
		}
	})
}

// Costs in flags and URLs have the units of the messages.
func TestParseCost(t *testing.T) {
	for text, want := range map[string]string{
		"": "requests=1", "tokens=900": "requests=1,tokens=900", "requests=0,weight=5": "weight=5",
		" weight=5, money=20": "requests=1,weight=5,money=20",
	} {
		if c, err := ParseCost(text); err != nil || costWords(c) != want {
			t.Errorf("%q: %s, %v; want %s", text, costWords(c), err, want)
		}
	}
	for text, want := range map[string]string{
		"900": "expected amounts by unit", "token=9": `"token" is no unit`, "tokens=x": "expected a whole number",
		"tokens=-1": "expected a whole number", "tokens=1,tokens=2": "twice", "requests=0": "costs nothing",
	} {
		if _, err := ParseCost(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// The page has a section for each kind of refusal.
func TestKindsAreOnThePage(t *testing.T) {
	b, err := os.ReadFile("../../../docs/permit.md")
	if err != nil {
		t.Fatal(err)
	}
	for kind := range titles {
		if !strings.Contains(string(b), "`"+kind+"`") {
			t.Errorf("docs/permit.md has no %s", kind)
		}
	}
}
