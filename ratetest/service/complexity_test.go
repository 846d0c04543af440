package service_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/service"
)

// costly returns what monday.com's fake counts for a query, and the bound that its row reads from the text.
func costly(t *testing.T, query, variables string) (counted, bound int64) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": json.RawMessage(variables)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest(http.MethodPost, "http://fake.test/v2", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	charge, _ := provider.ChargesOf("monday").Of(r)
	if bound, err = charge.Body[provider.Weight].Count(body); err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "k")
	x := &path{server: newServer(t, service.Config{Provider: "monday"}), statuses: map[int]int{}}
	resp, err := x.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if counted, err = charge.Answer[provider.Weight].Count(answer); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	return counted, bound
}

// The fake of monday.com counts queries as the documentation's examples do. The row, written apart, agrees.
func TestComplexityOfMonday(t *testing.T) {
	for _, c := range []struct {
		query, variables string
		want             int64
	}{
		{`{complexity{query} me{id photo_thumb}}`, `{}`, 12},                                    // the page on errors has this
		{`mutation{complexity{query} create_item(board_id:1,item_name:"a"){id}}`, `{}`, 30_001}, // the changelog has this
		{`{complexity{query} boards(limit:10){items(limit:1000){id}}}`, `{}`, 10*10 + 110_000},
		{`{complexity{query} boards{id}}`, `{}`, 11_000},
		{`{complexity{query} updates{id}}`, `{}`, 275},
		{`{complexity{query} boards(ids:[1,2,3],limit:2){id name}}`, `{}`, 36}, // ids are counted before the limit
		{`{complexity{query} boards(ids:1){id}}`, `{}`, 11},
		{`query($ids:[ID!],$n:Int){complexity{query} boards(ids:$ids){items_page(limit:$n){cursor items{id ...V}}}} fragment V on Item{column_values(ids:["a","b"]){text}}`,
			`{"ids":[1,2],"n":50}`, 2 * (10 + 50*(10+1+10+1+2*11))},
		{`query($n:Int){complexity{query} boards(limit:$n){id}}`, `{}`, 11_000}, // the variable has no value
		{`{complexity{query} a:boards(limit:2){id} b:boards(limit:3){creator{id}}}`, `{}`, 22 + 3*21},
		{`{complexity{query}}`, `{}`, 1},
	} {
		counted, bound := costly(t, c.query, c.variables)
		if counted != c.want || bound != c.want {
			t.Errorf("%s: the fake counts %d, the row %d, want %d", c.query, counted, bound, c.want)
		}
	}
}
