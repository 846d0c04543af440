package provider

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// inParts looks for refused parts in an answer to several requests at once. Its forms are those of
// documented APIs. A list of another form may be one of records, so it says nothing.
func inParts(v map[string]any) (w within) {
	w.unprocessed(v)
	for i := range partLists {
		w.inList(v, &partLists[i])
	}
	if failed, ok := v["Failed"].([]any); ok { // queues of Amazon
		for _, item := range failed {
			w.count(refusalIn(item), false)
		}
		if done, ok := v["Successful"].([]any); ok && w.status != 0 {
			w.Served, w.some = w.Served+len(done), w.some || len(done) > 0
		}
	}
	if shards, ok := v["_shards"].(map[string]any); ok && w.status == 0 { // a search that some shards refused
		failures, _ := shards["failures"].([]any)
		for _, item := range failures {
			in, _ := item.(map[string]any)
			w.count(refusalIn(in["reason"]), false)
		}
		if n, _ := shards["successful"].(float64); n > 0 && w.status != 0 {
			w.Served, w.some = int(min(n, MaxCount)), true
		}
	}
	if w.status == 0 {
		return within{}
	}
	return w
}

// unprocessed counts what DynamoDB hands back unserved. It hands back all of it only as an error.
func (w *within) unprocessed(v map[string]any) {
	for _, name := range []string{"UnprocessedItems", "UnprocessedKeys"} {
		tables, _ := v[name].(map[string]any)
		for _, table := range tables {
			n := 1
			if keys, ok := table.(map[string]any); ok {
				table = keys["Keys"]
			}
			if items, ok := table.([]any); ok {
				n = len(items)
			}
			w.status, w.some = http.StatusTooManyRequests, true
			w.Refused += n
		}
	}
	if answers, ok := v["Responses"].(map[string]any); ok && w.some {
		for _, table := range answers {
			items, _ := table.([]any)
			w.Served += len(items)
		}
	}
}

// partList is a list of answers in an answer.
type partList struct {
	name   string   // of the list
	status string   // the member with the status of each; *: in the only member
	code   string   // the member with the code of an error, where there is no status
	sign   string   // a member of the answer without which the list may be one of something else
	limits []string // codes of refusals in no words
}

var partLists = []partList{
	{name: "responses", status: "status"},                                           // Microsoft Graph, OData, _msearch
	{name: "items", status: "*", sign: "errors"},                                    // Elasticsearch, OpenSearch
	{name: "compositeResponse", status: "httpStatusCode"},                           // Salesforce
	{name: "results", status: "statusCode", sign: "hasErrors"},                      // Salesforce
	{name: "Records", code: "ErrorCode", sign: "FailedRecordCount"},                 // Kinesis
	{name: "RequestResponses", code: "ErrorCode", sign: "FailedPutCount"},           // Firehose
	{name: "Entries", code: "ErrorCode", sign: "FailedEntryCount"},                  // EventBridge
	{name: "results", code: "error", sign: "failure"},                               // Firebase
	{name: "data", code: "sCode", sign: "code", limits: []string{"50011", "50061"}}, // OKX
}

func (w *within) inList(v map[string]any, l *partList) {
	items, ok := v[l.name].([]any)
	if _, signed := v[l.sign]; !ok || l.sign != "" && !signed {
		return
	}
	var in within
	for _, item := range items {
		part, _ := item.(map[string]any)
		if l.status == "*" && len(part) == 1 {
			for _, only := range part {
				part, _ = only.(map[string]any)
			}
		}
		switch {
		case l.code != "":
			code, _ := part[l.code].(string)
			status := codeStatus(code)
			if slices.Contains(l.limits, code) {
				status = http.StatusTooManyRequests
			}
			in.count(status, code == "" || code == "0")
		case l.status == "*":
			in.count(statusOf(part["status"]))
		default:
			in.count(statusOf(part[l.status]))
		}
	}
	if in.status != 0 {
		w.status, w.some = in.status, w.some || in.some
		w.Served, w.Refused = w.Served+in.Served, w.Refused+in.Refused
	}
}

// statusOf reads the status of a part.
func statusOf(v any) (refused int, served bool) {
	switch v := v.(type) {
	case float64:
		return refusalStatus(int(v)), v >= 200 && v < 300
	case string:
		return codeStatus(v), len(v) == 3 && v[0] == '2'
	}
	return 0, false
}

// inMulti looks for refused parts in an answer 207: each item of a list has a status.
func inMulti(tree any) (w within) {
	lists := map[string]any{"": tree}
	if v, ok := tree.(map[string]any); ok {
		lists = v
	}
	for _, list := range lists {
		items, _ := list.([]any)
		for _, item := range items {
			part, _ := item.(map[string]any)
			for _, name := range []string{"status", "statusCode", "status_code", "httpStatus", "code"} {
				if v, ok := part[name]; ok {
					w.count(statusOf(v))
					break
				}
			}
		}
	}
	if w.status == 0 {
		return within{}
	}
	return w
}

// treeOf decodes JSON, and of a text that is cut off as much as is there. Nil: it is no document.
func treeOf(body string) (tree any, whole bool) {
	body = strings.TrimSpace(body)
	if len(body) == 0 || body[0] != '{' && body[0] != '[' {
		return nil, true
	}
	if json.Unmarshal([]byte(body), &tree) == nil {
		return tree, true
	}
	tree, _ = valueOf(json.NewDecoder(strings.NewReader(body)), 0)
	return tree, false
}

// deepestTree bounds the recursion of treeOf.
const deepestTree = 64

func valueOf(d *json.Decoder, depth int) (v any, whole bool) {
	token, err := d.Token()
	if err != nil || depth > deepestTree {
		return nil, false
	}
	switch token {
	case json.Delim('{'):
		all := map[string]any{}
		for whole = true; whole && d.More(); {
			var name json.Token
			if name, err = d.Token(); err != nil {
				return all, false
			}
			key, _ := name.(string)
			if v, whole = valueOf(d, depth+1); v != nil || whole {
				all[key] = v
			}
		}
		return all, whole && closes(d)
	case json.Delim('['):
		all := []any{}
		for whole = true; whole && d.More(); {
			if v, whole = valueOf(d, depth+1); v != nil || whole {
				all = append(all, v)
			}
		}
		return all, whole && closes(d)
	}
	return token, true
}

// closes takes the end of an object or a list.
func closes(d *json.Decoder) bool {
	_, err := d.Token()
	return err == nil
}
