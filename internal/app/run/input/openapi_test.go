package input

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// petAPI has what descriptions have: references, allOf, servers with variables, parameters of a path.
const petAPI = `openapi: 3.1.0
info: {title: Pets, version: "1"}
servers: [{url: "https://{region}.example.com/v1/", variables: {region: {default: eu}}}]
paths:
  /pets/{petId}:
    parameters: [{$ref: '#/components/parameters/petId'}]
    get:
      operationId: getPetById
      summary: Find a pet
      parameters:
        - {name: fields, in: query, schema: {type: array}}
        - {name: ids, in: query, explode: false, schema: {type: array}}
        - {name: sort, in: query, schema: {type: string, enum: [asc, desc]}}
        - {name: X-Trace, in: header, schema: {type: [string, "null"]}}
        - {name: session, in: cookie}
      responses: {200: {description: ok}}
    put:
      operationId: updatePet
      requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}}
    patch:
      operationId: patchPet
      servers: [{url: 'http://127.0.0.1:1'}]
      requestBody: {content: {application/x-www-form-urlencoded: {schema: {$ref: '#/components/schemas/Form'}}}}
  /pets:
    post: {requestBody: {required: true, content: {application/json: {schema: {type: array}}}}}
  /cookie: {get: {parameters: [{name: s, in: cookie, required: true}]}}
  /remote: {get: {parameters: [{$ref: 'other.yaml#/a'}]}}
  /circle: {get: {parameters: [{$ref: '#/components/parameters/circle'}]}}
  /gone: {get: {parameters: [{$ref: '#/components/parameters/gone'}]}}
  /deep: {post: {requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Deep'}}}}}}
  /wide: {post: {requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Wide'}}}}}}
  /file: {post: {requestBody: {required: true, content: {multipart/form-data: {}}}}}
  /none/{x}: {get: {}}
  /local: {servers: [{url: /v2}], get: {}}
components:
  parameters:
    petId: {name: petId, in: path, required: true, schema: {type: integer, format: int32}}
    circle: {$ref: '#/components/parameters/circle'}
  schemas:
    Base: {required: [name], properties: {name: {type: string}, id: {type: integer, readOnly: true}}}
    Deep: {allOf: [{$ref: '#/components/schemas/Deep'}]}
    Wide: {allOf: [{$ref: '#/components/schemas/W1'}, {$ref: '#/components/schemas/W1'}]}
    W1: {allOf: [{$ref: '#/components/schemas/W2'}, {$ref: '#/components/schemas/W2'}]}
    W2: {allOf: [{$ref: '#/components/schemas/W3'}, {$ref: '#/components/schemas/W3'}]}
    W3: {allOf: [{$ref: '#/components/schemas/W4'}, {$ref: '#/components/schemas/W4'}]}
    W4: {allOf: [{$ref: '#/components/schemas/W5'}, {$ref: '#/components/schemas/W5'}]}
    W5: {allOf: [{$ref: '#/components/schemas/W6'}, {$ref: '#/components/schemas/W6'}]}
    W6: {allOf: [{$ref: '#/components/schemas/W7'}, {$ref: '#/components/schemas/W7'}]}
    W7: {allOf: [{$ref: '#/components/schemas/W8'}, {$ref: '#/components/schemas/W8'}]}
    W8: {allOf: [{$ref: '#/components/schemas/W9'}, {$ref: '#/components/schemas/W9'}]}
    W9: {allOf: [{$ref: '#/components/schemas/W10'}, {$ref: '#/components/schemas/W10'}]}
    W10: {allOf: [{$ref: '#/components/schemas/W11'}, {$ref: '#/components/schemas/W11'}]}
    W11: {allOf: [{$ref: '#/components/schemas/W12'}, {$ref: '#/components/schemas/W12'}]}
    W12: {allOf: [{$ref: '#/components/schemas/W13'}, {$ref: '#/components/schemas/W13'}]}
    W13: {allOf: [{$ref: '#/components/schemas/W14'}, {$ref: '#/components/schemas/W14'}]}
    W14: {allOf: [{$ref: '#/components/schemas/W15'}, {$ref: '#/components/schemas/W15'}]}
    W15: {allOf: [{$ref: '#/components/schemas/W16'}, {$ref: '#/components/schemas/W16'}]}
    W16: {allOf: [{$ref: '#/components/schemas/W17'}, {$ref: '#/components/schemas/W17'}]}
    W17: {allOf: [{$ref: '#/components/schemas/W18'}, {$ref: '#/components/schemas/W18'}]}
    W18: {allOf: [{$ref: '#/components/schemas/W19'}, {$ref: '#/components/schemas/W19'}]}
    W19: {allOf: [{$ref: '#/components/schemas/W20'}, {$ref: '#/components/schemas/W20'}]}
    W20: {allOf: [{$ref: '#/components/schemas/W21'}, {$ref: '#/components/schemas/W21'}]}
    W21: {allOf: [{$ref: '#/components/schemas/W22'}, {$ref: '#/components/schemas/W22'}]}
    W22: {allOf: [{$ref: '#/components/schemas/W23'}, {$ref: '#/components/schemas/W23'}]}
    W23: {allOf: [{$ref: '#/components/schemas/W24'}, {$ref: '#/components/schemas/W24'}]}
    W24: {allOf: [{$ref: '#/components/schemas/W25'}, {$ref: '#/components/schemas/W25'}]}
    W25: {allOf: [{$ref: '#/components/schemas/W26'}, {$ref: '#/components/schemas/W26'}]}
    W26: {allOf: [{$ref: '#/components/schemas/W27'}, {$ref: '#/components/schemas/W27'}]}
    W27: {allOf: [{$ref: '#/components/schemas/W28'}, {$ref: '#/components/schemas/W28'}]}
    W28: {allOf: [{$ref: '#/components/schemas/W29'}, {$ref: '#/components/schemas/W29'}]}
    W29: {properties: {a: {}}}
    Form: {required: [a], properties: {a: {type: string}, b: {type: number}}}
    Pet:
      allOf:
        - {$ref: '#/components/schemas/Base'}
        - properties: {age: {type: integer}, tags: {type: array}, born: {type: string, format: date}}
        - properties: {home: {type: object}, ok: {type: boolean}, any: {}}
`

// planned returns an operation of petAPI.
func planned(t testing.TB, operation string) (*Operation, error) {
	t.Helper()
	api, err := ReadAPI([]byte(petAPI))
	if err != nil {
		t.Fatal(err)
	}
	o, err := api.Operation(operation)
	if err != nil {
		return nil, err
	}
	return api.Plan(o, "")
}

// madeOf returns the requests of an input, a text each, or the error of the first line.
func madeOf(t testing.TB, p *Operation, form Form, text string) string {
	t.Helper()
	r := New("in", strings.NewReader(text), Config{Form: form, MaxLine: 1 << 20})
	m := &Maker{Operation: p}
	if err := m.Check(r); err != nil {
		return err.Error()
	}
	var all []string
	for {
		item, err := r.Next()
		if err != nil {
			return strings.Join(all, "\n")
		}
		made, err := m.Make(r, item)
		if err != nil {
			return err.Error()
		}
		var text strings.Builder
		text.WriteString(p.Method + " " + made.URL)
		for _, name := range []string{"X-Trace", "Content-Type"} {
			if v := made.Header[http.CanonicalHeaderKey(name)]; v != nil {
				text.WriteString(fmt.Sprintf(" %s=%s", name, v))
			}
		}
		all = append(all, text.String()+" "+string(made.Body))
	}
}

// Each column goes to its place, with the type that the description says; what is wrong is said with its place.
func TestOperation(t *testing.T) {
	for _, c := range []struct {
		operation string
		form      Form
		in, want  string
	}{
		{"getPetById", CSV, "petId,fields,ids,sort,X-Trace,note\n1,\"a b,c\",\"1,2\",asc,t 1,x\n2,,,,,\n",
			"GET https://eu.example.com/v1/pets/1?fields=a+b&fields=c&ids=1%2C2&sort=asc X-Trace=[t 1] \n" +
				"GET https://eu.example.com/v1/pets/2 "},
		{"GET /pets/{petId}", CSV, "petid\n-3\n", "GET https://eu.example.com/v1/pets/-3 "},
		{"getPetById", CSV, "petId\n1.0\n",
			`in:2:1: the operation: column petId is "1.0", expected an integer (in: path)`},
		{"getPetById", CSV, "note,petId\nx,3000000000\n",
			`in:2:3: the operation: column petId is "3000000000", expected an integer of 32 bits (in: path)`},
		{"getPetById", CSV, "petId,sort\n1,up\n",
			`in:2:3: the operation: column sort is "up", expected one of asc, desc (in: query)`},
		{"getPetById", CSV, "petId,sort\n,asc\n",
			`in:2:1: the operation: column petId is empty, and the operation needs it (in: path)`},
		{"getPetById", CSV, "id\n1\n", `in:1:1: {row.petId}: there is no column "petId", expected one of id`},
		{"getPetById", JSONL, `{"petId":7,"fields":["a",1.50],"X-Trace":null}`,
			"GET https://eu.example.com/v1/pets/7?fields=a&fields=1.50 "},
		{"updatePet", CSV,
			"petId,name,age,tags,home,born,ok,any\n1,12,3,\"a,b\",\"{\"\"x\"\":1.50}\",2026-11-29,true,5\n",
			`PUT https://eu.example.com/v1/pets/1 Content-Type=[application/json] ` +
				`{"age":3,"any":"5","born":"2026-11-29","home":{"x":1.50},"name":"12","ok":true,"tags":["a","b"]}`},
		{"updatePet", JSONL, `{"petId":1,"name":"n","tags":["x",1.50],"any":{"a":[1]},"id":4}`,
			`PUT https://eu.example.com/v1/pets/1 Content-Type=[application/json] ` +
				`{"any":{"a":[1]},"name":"n","tags":["x",1.50]}`},
		{"updatePet", CSV, "petId,name,born\n1,n,29.11.2026\n",
			`in:2:5: the operation: column born is "29.11.2026", expected a date such as 2026-11-29 (in: body)`},
		{"updatePet", CSV, "petId,name,ok\n1,n,yes\n",
			`in:2:5: the operation: column ok is "yes", expected true or false (in: body)`},
		{"updatePet", CSV, "petId,name,home\n1,n,here\n",
			`in:2:5: the operation: column home is "here", expected an object of JSON`},
		{"updatePet", JSONL, `{"petId":1}`,
			`in:1:1: the operation: column name is empty, and the operation needs it (in: body)`},
		{"patchPet", CSV, "petId,a,b\n1,x&y,1.5\n2,,\n",
			"PATCH http://127.0.0.1:1/pets/1 Content-Type=[application/x-www-form-urlencoded] a=x%26y&b=1.5\n" +
				"PATCH http://127.0.0.1:1/pets/2 "},
		{"patchPet", CSV, "petId,a,b\n1,,1.5\n",
			`in:2:3: the operation: column a is empty, and the operation needs it (in: body)`},
		{"POST /pets", JSONL, `{"body":[1,{"a":2}]}`,
			`POST https://eu.example.com/v1/pets Content-Type=[application/json] [1,{"a":2}]`},
		{"POST /pets", JSONL, `{"body":""}`,
			"in:1:9: the operation: column body is empty, and the operation needs a body"},
		{"POST /pets", JSONL, `{"body":"{"}`,
			"in:1:9: the operation: column body is no JSON, expected a whole body of JSON"},
	} {
		p, err := planned(t, c.operation)
		if err != nil {
			t.Errorf("%s: %v", c.operation, err)
			continue
		}
		if got := madeOf(t, p, c.form, c.in); got != c.want {
			t.Errorf("%s of %q is\n%s, want\n%s", c.operation, c.in, got, c.want)
		}
	}
}

// What cannot be read is refused with its place and what is expected.
func TestOperationRefused(t *testing.T) {
	for name, says := range map[string]string{
		"getPetByID":    "there is no operation \"getPetByID\" among the ", // with the nearest name
		"GET /cookie":   "s, in cookie, has a form that is not supported",
		"GET /remote":   `GET /remote, parameter 1: $ref "other.yaml#/a" leads out of the file`,
		"GET /circle":   "a $ref that leads back to itself",
		"GET /gone":     `$ref "#/components/parameters/gone" leads to nothing`,
		"POST /deep":    "schemas within schemas, more than 64 deep or 10000 in all",
		"POST /wide":    "more than 64 deep or 10000 in all",
		"POST /file":    "it is multipart/form-data, expected application/json",
		"GET /none/{x}": "its path has {x}, which no parameter describes",
		"GET /local":    `GET /local has no complete address of a server (servers: "/v2"), expected --server https://…`,
	} {
		if _, err := planned(t, name); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %s", name, err, says)
		}
	}
	if _, err := planned(t, "getPetByID"); err == nil || !strings.Contains(err.Error(), "expected such as getPetById") {
		t.Error(err)
	}
	for text, says := range map[string]string{
		`{"swagger":"2.0","info":{}}`:              "version 2.0 of Swagger, expected OpenAPI 3.0 or 3.1",
		"openapi: 2.9":                             `its member openapi is "2.9", expected 3.0 or 3.1`,
		"openapi: 3.0.1\ninfo: {}":                 "a description of an API without operations",
		"openapi: 3.0.1\npaths: [a]":               "paths: expected an object",
		"{\"openapi\":":                            "no JSON or YAML",
		"openapi: 3.0.1\npaths: {/a: {get: 1}}":    "paths./a.get: expected an object",
		"openapi: 3.0.1\npaths: {/a: {$ref: 'b'}}": `paths./a: $ref "b" leads out of the file`,
		"- openapi: 3.0.1":                         "no JSON or YAML",
		"openapi: *a":                              "no JSON or YAML",
	} {
		if _, err := ReadAPI([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %s", text, err, says)
		}
	}
}

// A value cannot leave its place in the path, whatever it is.
func TestOperationKeepsThePath(t *testing.T) {
	api, err := ReadAPI([]byte("{\n\t\"openapi\": \"3.0.3\", \"info\": {}, " +
		"\"paths\": {\"/a/{x}/b\": {\"get\": {\"parameters\": [{\"name\": \"x\", \"in\": \"path\"}]}}}}"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := api.Plan(&api.Operations[0], "https://a.example/")
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		"../c?d#e": "GET https://a.example/a/..%2Fc%3Fd%23e/b ", "{x}": "GET https://a.example/a/%7Bx%7D/b ",
		"..": `in:2:1: the operation: column x is "..", which would lead to another path`,
	} {
		if got := madeOf(t, p, CSV, "x\n"+value+"\n"); got != want {
			t.Errorf("%q is %s, want %s", value, got, want)
		}
	}
}

// Lines of JSON with a member of that name are no description.
func TestIsAPI(t *testing.T) {
	for text, want := range map[string]bool{
		petAPI: true, "{\n  \"openapi\": \"3.0.0\",\n  \"info\": {": true, `{"openapi":"3.0.0","info":{}}`: true,
		"# c\n\"swagger\": '2.0'\ninfo:": true,
		`{"url":"http://a","openapi":1}`: false, "openapi,info\n1,2\n": false, "id,note\n1,openapi: info\n": false,
		"": false,
	} {
		if got := IsAPI([]byte(text)); got != want {
			t.Errorf("%.40q: %v", text, got)
		}
	}
}

// Whatever a description and a row have: there is an error, or a request below the server's address.
func FuzzOperation(f *testing.F) {
	f.Add(petAPI, "getPetById", "petId,fields,sort\n1,a,asc\n")
	f.Add(petAPI, "updatePet", "petId,name\n1,a\n")
	f.Add(`{"openapi":"3.0.0","paths":{"/a":`+
		`{"post":{"requestBody":{"content":{"application/json":{"schema":{"allOf":[{}]}}}}}}}}`, "POST /a", "a\n1\n")
	f.Fuzz(func(t *testing.T, text, operation, rows string) {
		api, err := ReadAPI([]byte(text))
		if err != nil {
			return
		}
		o, err := api.Operation(operation)
		if err != nil {
			o = &api.Operations[0]
		}
		p, err := api.Plan(o, "https://a.example/v1")
		if err != nil {
			return
		}
		r := New("in", strings.NewReader(rows), Config{Form: CSV, Comma: ',', MaxLine: 1 << 16})
		m := &Maker{Operation: p}
		if m.Check(r) != nil {
			return
		}
		for {
			item, err := r.Next()
			if err != nil {
				return
			}
			made, err := m.Make(r, item)
			if err == nil && !strings.HasPrefix(made.URL, "https://a.example/v1") {
				t.Fatalf("it leads to %q", made.URL)
			}
		}
	})
}
