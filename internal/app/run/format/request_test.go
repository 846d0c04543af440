package format

import (
	"slices"
	"testing"
)

// A file of another kind is recognized by the names in its first line. A file of requests or of a
// batch is not.
func TestNoRequest(t *testing.T) {
	for _, c := range []struct {
		head string
		want []string
	}{
		{`{"name":"ann","city":1}`, []string{"name", "city"}}, {"\ufeff \n" + `{"name":"ann"}`, []string{"name"}}, {`{"id":1,"name":"ann"}` + "\nx", []string{"id", "name"}},
		{`{"url":"http://a","name":"ann"}`, nil}, {`{"id":"a"}`, nil}, {`{"id":"a","hidden":[]}`, nil}, {`[1]`, nil}, {`7`, nil}, {`{"name"`, nil}, {``, nil}, {`{}`, nil},
		{`{"name":1}` + "\n" + `{"custom_id":"a","method":"POST","url":"/v1/responses","body":{}}`, nil}, {`{"custom_id":"a","method":"POST","url":"/v1/responses","body":{}}`, nil},
	} {
		if got := NoRequest([]byte(c.head)); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.head, got, c.want)
		}
	}
}
