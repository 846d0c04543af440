package explain

import (
	"slices"
	"strings"
)

// harvest returns the answers in a value: objects that have headers, or are headers. around is the
// text around the value. It is searched for the status if the value has none.
func harvest(n *node, around string) []Answer {
	if a, ok := errorBody(n, around); ok {
		return []Answer{a.end()}
	}
	h := harvester{}
	h.walk(n, Answer{}, 0)
	if len(h.found) == 0 {
		if a, ok := listed(n); ok {
			h.found = append(h.found, a)
		} else if a, ok := h.flat(n, Answer{}); ok {
			h.found = append(h.found, a)
		} else if a, ok := onlyBody(n, around); ok {
			h.found = append(h.found, a)
		}
	}
	for i := range h.found {
		if a := &h.found[i]; !a.Said {
			a.state(statusIn(around))
		}
		h.found[i] = h.found[i].end()
	}
	return h.found
}

type harvester struct{ found []Answer }

// plainly makes spellings of a key equal: statusCode, status_code, "Status Code".
func plainly(key string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && alnum(byte(r)) && r != '_' {
			return r
		}
		return -1
	}, strings.ToLower(key))
}

// asks reports whether a key is that of the request.
func asks(key string) bool {
	key = plainly(key)
	return key == "config" || key == "req" || strings.Contains(key, "request") && !strings.Contains(key, "response")
}

// walk looks for headers in n. around has the status and the host that the objects around n have.
func (h *harvester) walk(n *node, around Answer, depth int) {
	if n.open == 0 || depth > maxDepth {
		return
	}
	for _, it := range n.items {
		around.know(it)
	}
	here := len(h.found)
	for _, it := range n.items {
		key := plainly(it.key)
		if it.keyed && !asks(it.key) && strings.Contains(key, "header") && !strings.HasPrefix(key, "access") &&
			!strings.Contains(it.key, ".") {
			a := around
			a.Header = nil
			a.headers(it.value, 0)
			if len(a.Header) > 0 {
				a.body(n)
				h.found = append(h.found, a)
			}
		}
	}
	if len(h.found) > here {
		return
	}
	for _, it := range n.items {
		if !it.keyed || !asks(it.key) {
			h.walk(it.value, around, depth+1)
		}
	}
	if len(h.found) > here {
		return
	}
	if a, ok := h.flat(n, around); ok && a.worth() {
		h.found = append(h.found, a)
	}
}

// know takes the status or the host from an item, if it has one of them.
func (a *Answer) know(it item) {
	switch key := plainly(it.key); key {
	case "status", "statuscode", "httpstatus", "httpstatuscode", "httpcode", "httpresponsestatuscode", "responsestatus",
		"responsecode", "code":
		if key != "code" || !a.Said {
			a.state(it.value.text)
		}
	case "url", "requesturl", "uri", "baseurl", "urlfull":
		if host := hostOf(it.value.text); host != "" {
			a.Host = host
		}
	case "request", "config", "req":
		for _, inner := range it.value.items {
			if k := plainly(inner.key); k == "url" || k == "baseurl" {
				a.know(inner)
			}
		}
	}
}

// headers reads header fields in one of these forms: an object; a list of pairs, of names and
// values in turn, or of {name, value}; or any of these within another object.
func (a *Answer) headers(n *node, depth int) {
	if depth > 8 {
		return
	}
	if n.open == 0 {
		switch text := strings.TrimSpace(n.text); {
		case strings.HasPrefix(text, "{") || strings.HasPrefix(text, "["):
			if inner, _, err := objects(text); err == nil {
				a.Header = inner.Header
			}
		case strings.Contains(text, ":"): // lines, as XMLHttpRequest returns them
			if inner, _, err := fields(strings.Split(clean(text), "\n")); err == nil {
				a.Header = inner.Header
			}
		}
		return
	}
	if a.pair(n) {
		return
	}
	scalars := len(n.items)%2 == 0
	for _, it := range n.items {
		scalars = scalars && !it.keyed && it.value.open == 0
	}
	for i := 0; scalars && i < len(n.items); i += 2 {
		a.named(n.items[i].value.text, n.items[i+1].value)
	}
	if scalars {
		return
	}
	for _, it := range n.items {
		if !it.keyed || !a.named(it.key, it.value) {
			a.headers(it.value, depth+1)
		}
	}
}

// pair reads ["name", "value"] or {name: "…", value: "…"}.
func (a *Answer) pair(n *node) bool {
	if len(n.items) < 2 {
		return false
	}
	name, value := "", (*node)(nil)
	for _, it := range n.items {
		switch {
		case it.keyed && it.key == "name":
			name = it.value.text
		case it.keyed && it.key == "value":
			value = it.value
		}
	}
	if value == nil && len(n.items) == 2 && !n.items[0].keyed && !n.items[1].keyed && n.items[0].value.open == 0 &&
		n.open != '{' {
		name, value = n.items[0].value.text, n.items[1].value
	}
	return value != nil && a.named(name, value)
}

// named adds a header field, if its value is a scalar or a list of scalars.
func (a *Answer) named(name string, v *node) bool {
	if name == ":status" {
		return a.state(v.text)
	}
	if name = fieldName(name); !FieldName(name) {
		return false
	}
	if v.open == 0 {
		if v.quoted || v.text != "null" {
			a.add(name, v.text)
		}
		return true
	}
	for _, it := range v.items {
		if it.keyed || it.value.open != 0 {
			return false
		}
	}
	for _, it := range v.items {
		a.add(name, it.value.text)
	}
	return true
}

// fieldName returns the name of a field without the prefix of logs:
// http.response.header.retry_after.
func fieldName(key string) string {
	low := strings.ToLower(key)
	for _, before := range []string{"headers.", "header."} {
		if i := strings.LastIndex(low, before); i >= 0 {
			key = key[i+len(before):]
			break
		}
	}
	if !strings.Contains(key, "-") {
		key = strings.ReplaceAll(key, "_", "-")
	}
	return key
}

// flat reads an object whose members are header fields, perhaps among others.
func (h *harvester) flat(n *node, around Answer) (Answer, bool) {
	a := around
	a.Header = nil
	known, dashes := false, 0
	for _, it := range n.items {
		a.know(it)
		name := fieldName(it.key)
		if !it.keyed || !FieldName(name) || plainly(name) == "status" || strings.Contains(name, ".") {
			continue
		}
		if a.named(name, it.value) {
			known = known || speaks(name)
			if strings.Contains(name, "-") {
				dashes++
			}
		}
	}
	if !known && (dashes < 2 || dashes*2 < len(n.items)) {
		return a, false
	}
	a.body(n)
	return a, true
}

// body reads the body, which stands beside the headers. It takes the first of several names that
// exists.
func (a *Answer) body(n *node) {
	for _, name := range []string{"body", "responsebody", "respbody", "responsetext", "data", "content", "text", "error",
		"retryafter"} {
		for _, it := range n.items {
			if plainly(it.key) != name || it.value.open == 0 && it.value.text == "" {
				continue
			}
			switch {
			case name == "retryafter": // n is a body that was mistaken for header fields, and is kept as a body, too
				if !strings.Contains(it.key, "-") {
					a.Body = n.json()
				}
			case name == "error" && it.value.open != 0:
				a.Body = []byte(`{"error":` + string(it.value.json()) + `}`)
			case it.value.open == 0:
				if it.value.quoted && name != "error" {
					a.Body = []byte(it.value.text)
				}
			case name == "content": // of a HAR
				for _, inner := range it.value.items {
					if inner.key == "text" {
						a.Body = []byte(inner.value.text)
					}
				}
			default:
				a.Body = it.value.json()
			}
			if a.Body != nil {
				return
			}
		}
	}
}

// listed reads a list of pairs that are header fields.
func listed(n *node) (a Answer, ok bool) {
	if n.open == '{' || len(n.items) == 0 || n.items[0].keyed {
		return a, false
	}
	a.headers(n, 0)
	return a, a.worth()
}

// onlyBody reads an object that is the body of a refusal. The status is in the text around it.
func onlyBody(n *node, around string) (a Answer, ok bool) {
	if !saysWhy(n) || !a.state(statusIn(around)) || a.Status < 400 {
		return a, false
	}
	a.Body = n.json()
	return a, true
}

// errorBody reads the body of a refusal that details its error: its members are no header fields,
// whatever their names. Google's has retryDelay and quota_limit. The status is the error's code, or in
// the text around it.
func errorBody(n *node, around string) (a Answer, ok bool) {
	one := n
	if n.open == '[' && len(n.items) == 1 {
		one = n.items[0].value
	}
	in, ok := one.member("error")
	if !ok || hasHeaders(n, 0) ||
		slices.ContainsFunc(one.items, func(it item) bool { return it.keyed && asks(it.key) && it.value.open != 0 }) {
		return a, false
	}
	if _, ok = in.member("details"); !ok {
		return a, false
	}
	for _, it := range append(slices.Clone(one.items), in.items...) {
		a.know(it)
	}
	a.Host = ""
	if !a.Said && !a.state(statusIn(around)) {
		a.Bare = true
	}
	a.Body = n.json()
	return a, !a.Said || a.Status >= 400
}

// member returns the object or list that an object has by a name.
func (n *node) member(name string) (*node, bool) {
	for _, it := range n.items {
		if n.open == '{' && it.keyed && plainly(it.key) == name && it.value.open != 0 {
			return it.value, true
		}
	}
	return nil, false
}

// hasHeaders reports whether a value has header fields somewhere in it.
func hasHeaders(n *node, depth int) bool {
	return depth <= maxDepth && slices.ContainsFunc(n.items, func(it item) bool {
		return it.keyed && strings.Contains(plainly(it.key), "header") || hasHeaders(it.value, depth+1)
	})
}

// saysWhy reports whether an object has a member for the reason of a refusal.
func saysWhy(n *node) bool {
	return n.open == '{' && slices.ContainsFunc(n.items, func(it item) bool {
		return slices.Contains([]string{"error", "errors", "message", "detail", "code", "errorcode", "msg", "retcode",
			"type", "reason"}, plainly(it.key))
	})
}

// alone reads an object, or a list of objects, that is the whole text: the body of a refusal, with
// nothing of the request in it.
func alone(n *node) (a Answer, ok bool) {
	one := n
	if n.open == '[' && len(n.items) > 0 {
		one = n.items[0].value
	}
	if !saysWhy(one) || slices.ContainsFunc(one.items,
		func(it item) bool { return it.keyed && asks(it.key) && it.value.open != 0 }) {
		return a, false
	}
	a.Bare, a.Body = true, n.json()
	return a, true
}
