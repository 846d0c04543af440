package provider

import (
	"encoding/json"
	"strings"
	"testing"
)

func ofQuery(query, variables string) []byte {
	text, _ := json.Marshal(query)
	return []byte(`{"query":` + string(text) + `,"variables":` + variables + `}`)
}

// The bounds of queries are those of the documented rules.
func TestQueryBounds(t *testing.T) {
	for _, c := range []struct {
		query, variables string
		shopify, github  int64 // 0: it is not known
	}{
		{`{shop{id name}}`, `{}`, 1, 1},
		{`{id}`, `null`, 1, 1},
		{`{products(first:98){nodes{id}}}`, `{}`, 100, 1},
		{`{products(first: 10){edges{cursor node{id title}} pageInfo{hasNextPage}}}`, `{}`, 12, 1},
		{`query Q($n:Int!, $o: O = {a: [1]}) {products(first:$n, query:"a) {b}"){nodes{id}}}`, `{"n":50}`, 52, 1},
		{`query($n:Int){products(last:$n){nodes{id}}}`, `{}`, 0, 0},
		{`{orders(first:10){nodes{lineItems(first:5){nodes{id product{id}}}}}}`, `{}`, 2 + 10*(1+2+5*2), 1},
		{"{a:products(first:10){nodes{id}} # first: 900 {\n b:products(first:20){nodes{...P ...on X{y{z}}}}} fragment P on Product @x(first:7){tags{id}}", `{}`, 12 + 2 + 20*3, 1},
		{`mutation{productCreate(input:{title:"a"}){product{id} userErrors{field}}}`, `{}`, 10 + 3, 1},
		{`{repository{issues(first:100){nodes{comments(last:50){nodes{id reactions(first:10){nodes{id}}}}}}}}`, `{}`, 2 + 100*(1+2+50*(1+2+10)) + 1, 51},
		{`{viewer{repositories(first:100){nodes{id}}}}`, `{}`, 103, 1},
		{`{a{`, `{}`, 0, 0},
		{`{products(first:10`, `{}`, 0, 0},
		{`{products(first:-1){nodes{id}}}`, `{}`, 0, 0},
		{``, `{}`, 0, 0},
		{`{a{...F}} fragment F on A {b{...F}}`, `{}`, 16, 1}, // a fragment in itself ends with the depth
		{strings.Repeat(`{a`, 100) + strings.Repeat(`}`, 100), `{}`, 0, 0},
	} {
		for _, of := range []struct {
			bound queryBound
			want  int64
		}{{shopifyBound, c.shopify}, {githubBound, c.github}} {
			got, err := of.bound.Count(ofQuery(c.query, c.variables))
			if got != of.want || (err != nil) != (of.want == 0) {
				t.Errorf("%s of %.60s: %d, %v, want %d", of.bound.name, c.query, got, err, of.want)
			}
		}
	}
	for _, body := range []string{"", "x", `{"query":5}`, `[]`} {
		if n, err := shopifyBound.Count([]byte(body)); err == nil {
			t.Errorf("%s: %d", body, n)
		}
	}
}

// A list of monday.com without a number counts as so many objects as the service gives at most.
func TestMondayWithoutNumbers(t *testing.T) {
	for query, want := range map[string]int64{
		`{boards{id}}`:                          1000*10 + 1000,
		`{updates{id}}`:                         25*10 + 25,
		`{items_page{items{id}}}`:               25*10 + 25*(10+1),
		`{boards(ids:[1,2]){updates{id}}}`:      2*10 + 2*25*(10+1),
		`{boards(limit:3){items_page{cursor}}}`: 3*10 + 3*25*(10+1),
		`{me{id}}`:                              10 + 1,
	} {
		if got, err := mondayBound.Count(ofQuery(query, `{}`)); got != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", query, got, err, want)
		}
	}
}

func TestJSONPath(t *testing.T) {
	p := jsonPath("extensions.cost.actualQueryCost")
	for body, want := range map[string]int64{
		`{"extensions":{"cost":{"actualQueryCost":22}}}`: 22, `{"extensions":{"cost":{"actualQueryCost":0.5}}}`: 1,
		`{"extensions":{"cost":{"actualQueryCost":null}}}`: -1, `{"extensions":{"cost":5}}`: -1, `{}`: -1, ``: -1,
		`{"extensions":{"cost":{"actualQueryCost":-1}}}`: -1, `{"extensions":{"cost":{"actualQueryCost":1e300}}}`: -1,
	} {
		if n, err := p.Count([]byte(body)); err == nil && n != want || (err != nil) != (want < 0) {
			t.Errorf("%s: %d, %v, want %d", body, n, err, want)
		}
	}
}

// A bound is 1 … MaxCount, and no text takes long.
func FuzzQueryBound(f *testing.F) {
	f.Add(`query Q($n:Int){a:b(first:$n,x:{y:"}"}){edges{node{id ...F}} pageInfo{a}}} fragment F on X {c(last:3){d}}`, 9.0)
	f.Add(`mutation{a(input:"""x"""){b}}`, 1e300)
	f.Add(`{a{...F ...F}} fragment F on A {b{...F ...F}}`, 0.0)
	f.Fuzz(func(t *testing.T, query string, n float64) {
		for _, b := range []queryBound{shopifyBound, githubBound} {
			q, err := readQuery(query, map[string]any{"n": n})
			if err != nil {
				continue
			}
			if cost := (*b.rule)(q); !(cost >= 0) {
				t.Errorf("%s of %q: %v", b.name, query, cost)
			}
			if got, err := b.Count(ofQuery(query, `{}`)); err == nil && (got < 1 || got > MaxCount) {
				t.Errorf("%s of %q: %d", b.name, query, got)
			}
		}
	})
}
