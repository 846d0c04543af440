package provider

import (
	"encoding/json"
	"net/http"
	"strings"
)

// Reads reports whether all that a request asks for in its body is to read, so that all of it can
// be sent again without harm: queries of GraphQL, batches in which each request is a GET, and reads
// of DynamoDB. If that is not sure, it reports false.
func Reads(h http.Header, body []byte) bool {
	if _, operation, ok := strings.Cut(h.Get("X-Amz-Target"), "DynamoDB_20120810."); ok {
		return operation == "BatchGetItem" || operation == "TransactGetItems"
	}
	if kindOf(h.Get("Content-Type")) == "application/graphql" {
		return onlyQueries(string(body))
	}
	var one map[string]json.RawMessage
	if json.Unmarshal(body, &one) == nil {
		return readsOne(one)
	}
	var all []map[string]json.RawMessage
	if json.Unmarshal(body, &all) != nil || len(all) == 0 {
		return false
	}
	for _, one := range all {
		if !readsOne(one) {
			return false
		}
	}
	return true
}

// readsOne reports whether one JSON object is a query, a GET, or a list of these.
func readsOne(v map[string]json.RawMessage) bool {
	var query, method string
	switch {
	case json.Unmarshal(v["query"], &query) == nil && query != "":
		return onlyQueries(query)
	case json.Unmarshal(v["method"], &method) == nil && method != "":
		return method == http.MethodGet && v["jsonrpc"] == nil
	}
	for _, name := range []string{"requests", "compositeRequest", "batchRequests"} {
		var parts []struct {
			Method string `json:"method"`
		}
		if json.Unmarshal(v[name], &parts) != nil || len(parts) == 0 {
			continue
		}
		for _, part := range parts {
			if part.Method != http.MethodGet {
				return false
			}
		}
		return true
	}
	return false
}

// onlyQueries reports whether a document of GraphQL has nothing but queries and fragments. A word
// that begins another operation is one outside of all braces, strings and comments.
func onlyQueries(document string) bool {
	depth, any := 0, false
	for len(document) > 0 {
		switch c := document[0]; {
		case c == '#':
			_, document, _ = strings.Cut(document, "\n")
			continue
		case strings.HasPrefix(document, `"""`):
			_, rest, ok := strings.Cut(document[3:], `"""`)
			if document = rest; !ok {
				return false
			}
			continue
		case c == '"':
			var ok bool
			if document, ok = afterString(document[1:]); !ok {
				return false
			}
			continue
		case c == '{' || c == '(':
			depth++
			any = true
		case c == '}' || c == ')':
			if depth--; depth < 0 {
				return false
			}
		case depth == 0 && isLetter(c):
			n := 1
			for n < len(document) && isLetter(document[n]) {
				n++
			}
			if word := document[:n]; word == "mutation" || word == "subscription" {
				return false
			}
			document = document[n:]
			continue
		}
		document = document[1:]
	}
	return any && depth == 0
}

// afterString returns the rest of a text after a string that has begun, and false if it does not
// end on its line.
func afterString(text string) (rest string, ok bool) {
	for i := 0; i < len(text) && text[i] != '\n'; i++ {
		switch text[i] {
		case '"':
			return text[i+1:], true
		case '\\':
			i++
		}
		if i < len(text) && text[i] == '\n' {
			break
		}
	}
	return "", false
}

func isLetter(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
