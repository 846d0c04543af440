package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const orders = `openapi: 3.0.3
info: {title: Orders, version: "1"}
servers: [{url: URL/v1}]
paths:
  /orders/{order}:
    get:
      operationId: getOrder
      summary: One order
      parameters:
        - {name: order, in: path, required: true, schema: {type: integer}}
        - {name: lang, in: query, schema: {type: string, enum: [de, en]}}
    put:
      operationId: putOrder
      parameters: [{name: order, in: path, required: true, schema: {type: integer}}]
      requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/order'}}}}
components:
  schemas:
    order: {required: [state], properties: {state: {type: string}, n: {type: integer}}}
`

// Rows go to an operation of an API as its description says. What does not go is said before anything is sent.
func TestRunOpenAPI(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	lib := newLibrary(t, func(w http.ResponseWriter, q *http.Request) {
		body := make([]byte, 100)
		n, _ := q.Body.Read(body)
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, strings.TrimSpace(fmt.Sprint(q.Method, " ", q.RequestURI, " ", string(body[:n]))))
	})
	api := write(t, "api.yaml", strings.ReplaceAll(orders, "URL", lib.URL))
	swagger := write(t, "old.json", `{"swagger":"2.0","info":{},"paths":{}}`)
	rows := write(t, "rows.csv", "order,lang,state,n\n17,de,new,3\n18,,it's,\n")
	bad := write(t, "bad.csv", "order,lang\n17,de\nx,de\n19,fr\n")
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
		want []string
	}{
		{"a GET", []string{rows, "--openapi", api, "--operation", "getOrder"}, 0, "2 done",
			[]string{"GET /v1/orders/17?lang=de", "GET /v1/orders/18"}},
		{"a body", []string{rows, "--openapi", api, "--operation", "putOrder"}, 0, "2 done",
			[]string{`PUT /v1/orders/17 {"n":3,"state":"new"}`, `PUT /v1/orders/18 {"state":"it's"}`}},
		{"another server", []string{rows, "--openapi", api, "--operation", "GET /orders/{order}", "--server",
			lib.URL + "/v2"}, 0, "2 done",
			[]string{"GET /v2/orders/17?lang=de", "GET /v2/orders/18"}},
		{"bad values", []string{bad, "--openapi", api, "--operation", "getOrder"}, 4,
			`bad.csv:3:1: the operation: column order is "x", expected an integer (in: path)`, nil},
		{"all of them", []string{bad, "--openapi", api, "--operation", "getOrder"}, 4,
			`bad.csv:4:4: the operation: column lang is "fr"`, nil},
		{"a column is missing", []string{bad, "--openapi", api, "--operation", "putOrder"}, 2,
			`there is no column "state"`, nil},
		{"another operation", []string{rows, "--openapi", api, "--operation", "getOrders"}, 2,
			"expected such as getOrder", nil},
		{"no operation", []string{rows, "--openapi", api}, 2, "getOrder  GET /orders/{order}  One order", nil},
		{"the description alone", []string{api}, 2,
			"paceline run rows.csv --openapi " + api + " --operation getOrder", nil},
		{"Swagger", []string{swagger}, 4, "version 2.0 of Swagger, expected OpenAPI 3.0 or 3.1", nil},
		{"no such file", []string{rows, "--openapi", api + "x", "--operation", "getOrder"}, 4, "no such file", nil},
		{"with --url", []string{rows, "--openapi", api, "--operation", "getOrder", "--url", lib.URL}, 2,
			"--url with --openapi", nil},
		{"without it", []string{rows, "--operation", "getOrder"}, 2,
			"--operation without a description of an API, expected --openapi FILE", nil},
		{"URLs", []string{write(t, "urls.txt", lib.URL+"\n"), "--openapi", api, "--operation", "getOrder"}, 2,
			"--openapi is for rows", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked = nil
			args := append([]string{"run", "--limit", "500/s", "--progress", "off", "--out",
				filepath.Join(t.TempDir(), "r.jsonl")}, c.args...)
			code, _, stderr := paceline("", args...)
			slices.Sort(asked)
			if code != c.code || !strings.Contains(stderr, c.says) || !slices.Equal(asked, c.want) {
				t.Errorf("%d, expected %d: %s\nsent %q", code, c.code, stderr, asked)
			}
		})
	}
}
