package service

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// stripeKinds are Stripe's lists, with the name and the prefix of an entry.
var stripeKinds = map[string][2]string{"customers": {"customer", "cus"}, "charges": {"charge", "ch"},
	"products": {"product", "prod"}, "prices": {"price", "price"}, "invoices": {"invoice", "in"},
	"subscriptions": {"subscription", "sub"}, "payment_intents": {"payment_intent", "pi"}, "events": {"event", "evt"},
	"files": {"file", "file"}}

func stripeError(status int, text, code, param string) (int, any) {
	e := object{"message": text, "type": "invalid_request_error"}
	if code != "" {
		e["code"], e["param"] = code, param
		e["doc_url"] = "https://stripe.com/docs/error-codes/" + strings.ReplaceAll(code, "_", "-")
	}
	return status, object{"error": e}
}

func stripeThing(kind string, n int) object {
	names := stripeKinds[kind]
	return object{"id": fmt.Sprintf("%s_%024d", names[1], n), "object": names[0], "created": 1_735_689_600 - n,
		"livemode": false, "metadata": object{}}
}

func stripeAPI() func(*asked) *answer {
	known := func(f func(a *asked, kind, id string) *answer) func(*asked, []string) *answer {
		return func(a *asked, parts []string) *answer {
			if _, ok := stripeKinds[parts[0]]; !ok {
				return says(stripeError(http.StatusNotFound, fmt.Sprintf("Unrecognized request URL (%s: %.100s).", a.Method,
					a.path()), "", ""))
			}
			return f(a, parts[0], append(parts, "")[1])
		}
	}
	return routed(keyed(noKey(stripeError(http.StatusUnauthorized, "You did not provide an API key. You need to provide "+
		"your API key in the Authorization header, using Bearer auth (e.g. 'Authorization: Bearer YOUR_SECRET_KEY').",
		"", ""))),
		route{"GET /v1/{}", known(stripeList)},
		route{"GET /v1/{}/{}", known(func(_ *asked, kind, id string) *answer {
			all := made(func(n int) object { return stripeThing(kind, n) })
			if i := position(all, id); i >= 0 {
				return says(http.StatusOK, all[i])
			}
			return says(stripeError(http.StatusNotFound, fmt.Sprintf("No such %s: '%.100s'", stripeKinds[kind][0], id),
				"resource_missing", "id"))
		})},
		route{"POST /v1/{}", known(stripeMade)},
		route{"POST /v1/{}/{}", known(stripeMade)},
		route{"DELETE /v1/{}/{}", known(func(_ *asked, kind, id string) *answer {
			return says(http.StatusOK, object{"id": id, "object": stripeKinds[kind][0], "deleted": true})
		})},
	)
}

// stripeList pages by the id of the entry before, or after.
func stripeList(a *asked, kind, _ string) *answer {
	all := made(func(n int) object { return stripeThing(kind, n) })
	n, err := strconv.Atoi(cmp.Or(a.field("limit"), "10"))
	if err != nil || n < 1 || n > 100 {
		return says(stripeError(http.StatusBadRequest, "Invalid integer: "+clipped(a.field("limit")),
			"parameter_invalid_integer", "limit"))
	}
	from, to := 0, len(all)
	if after := a.field("starting_after"); after != "" {
		if from = position(all, after) + 1; from == 0 {
			return says(stripeError(http.StatusBadRequest, fmt.Sprintf("No such %s: '%.100s'", stripeKinds[kind][0], after),
				"resource_missing", "starting_after"))
		}
	}
	if before := position(all, a.field("ending_before")); before >= 0 {
		to = before
		from = max(from, to-n)
	}
	page, more := all[from:min(from+n, to)], from+n < to || to < len(all) && from > 0
	return says(http.StatusOK, object{"object": "list", "url": a.path(), "has_more": more, "data": page})
}

// stripeMade returns the entry with the flat fields of the form.
func stripeMade(a *asked, kind, id string) *answer {
	made := stripeThing(kind, entries+1)
	if id != "" {
		made["id"] = id
	}
	form, _ := url.ParseQuery(string(a.Body)) // a file is sent as another form, of which nothing is shown
	for name, v := range form {
		if !strings.ContainsAny(name, "[]-\r\n") && len(v) == 1 {
			made[name] = v[0]
		}
	}
	if kind == "files" {
		made["size"], made["purpose"], made["type"] = len(a.Body), "dispute_evidence", "png"
	}
	return says(http.StatusOK, made)
}

// shopifyREST pages by a token in a link.
func shopifyREST(a *asked, parts []string) *answer {
	make := func(n int) object { return object{"id": n, "title": fmt.Sprintf("Fig %d", n)} }
	page, next := pageOf(made(make), a.field("page_info"), a.field("limit"), 50)
	return &answer{status: http.StatusOK, body: func(r *reply) any {
		if next != "" {
			q := url.Values{"page_info": {next}, "limit": {cmp.Or(a.field("limit"), "50")}}
			r.set("Link", fmt.Sprintf(`<%s%s?%s>; rel="next"`, a.base(), a.path(), q.Encode()))
		}
		return object{parts[1]: page}
	}}
}

func shopifyAPI() func(*asked) *answer {
	return routed(keyed(noKey(http.StatusUnauthorized, object{
		"errors": "[API] Invalid API key or access token (unrecognized login or wrong password)"})),
		route{"POST /admin/api/{}/graphql.json", func(a *asked, _ []string) *answer { return shopifyGraph(a) }},
		route{"GET /admin/api/{}/{}.json", shopifyREST},
	)
}
