package service

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

func notionID(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

// notionThing is a made-up entry: a page, a block or a user.
func notionThing(kind string, n int) object {
	o := object{"object": kind, "id": notionID(n)}
	switch kind {
	case "user":
		o["name"], o["type"], o["avatar_url"], o["person"] = fmt.Sprintf("Fig %d", n), "person", nil, object{}
	case "block":
		o["type"], o["has_children"], o["archived"] = "paragraph", false, false
		o["paragraph"] = object{"rich_text": []object{}, "color": "default"}
	default:
		o["created_time"], o["last_edited_time"] = "2026-01-15T12:00:00.000Z", "2026-01-15T12:00:00.000Z"
		o["archived"], o["in_trash"], o["properties"], o["url"] = false, false, object{}, "https://www.notion.so/fig"
	}
	return o
}

// notionList pages by a cursor and a size, in the query or in the body.
func notionList(kind string) func(*asked, []string) *answer {
	return func(a *asked, _ []string) *answer {
		all := made(func(n int) object { return notionThing(kind, n) })
		page, next := pageOf(all, a.field("start_cursor"), a.field("page_size"), 100)
		list := object{"object": "list", "results": page, "next_cursor": nil, "has_more": next != "", "type": kind,
			kind: object{}}
		if next != "" {
			list["next_cursor"] = next
		}
		return says(http.StatusOK, list)
	}
}

func notionOne(kind string) func(*asked, []string) *answer {
	return func(a *asked, parts []string) *answer {
		o := notionThing(kind, entries+1)
		if len(parts) > 0 {
			o["id"] = parts[0]
		}
		if properties, ok := a.fields()["properties"]; ok {
			o["properties"] = properties
		}
		return says(http.StatusOK, o)
	}
}

func notionError(status int, code, text string) (int, any) {
	return status, object{"object": "error", "status": status, "code": code, "message": text, "request_id": notionID(0)}
}

// notionFile is an upload in two steps: it is made, and its bytes are sent.
func notionFile(a *asked, parts []string) *answer {
	file := object{"object": "file_upload", "id": notionID(1), "status": "pending", "archived": false,
		"created_time": "2026-01-15T12:00:00.000Z", "upload_url": a.base() + "/v1/file_uploads/" + notionID(1) + "/send"}
	if len(parts) > 0 {
		file["id"], file["status"], file["content_length"] = parts[0], "uploaded", len(a.Body)
	}
	return says(http.StatusOK, file)
}

func notionAPI() func(*asked) *answer {
	return routed(func(a *asked) *answer {
		switch {
		case !a.Keyed:
			return noKey(notionError(http.StatusUnauthorized, "unauthorized", "API token is invalid."))
		case a.Header.Get("Notion-Version") == "":
			return says(notionError(http.StatusBadRequest, "missing_version", "Notion-Version header should be defined."))
		}
		return nil
	},
		route{"GET /v1/users", notionList("user")},
		route{"GET /v1/users/{}", notionOne("user")},
		route{"POST /v1/search", notionList("page")},
		route{"POST /v1/databases/{}/query", notionList("page")},
		route{"POST /v1/data_sources/{}/query", notionList("page")},
		route{"GET /v1/blocks/{}/children", notionList("block")},
		route{"GET /v1/blocks/{}", notionOne("block")},
		route{"POST /v1/pages", notionOne("page")},
		route{"GET /v1/pages/{}", notionOne("page")},
		route{"PATCH /v1/pages/{}", notionOne("page")},
		route{"POST /v1/file_uploads", notionFile},
		route{"POST /v1/file_uploads/{}/send", notionFile},
	)
}

// slackList pages by a cursor. name is the list's in the answer.
func slackList(name string, make func(n int) object) func(*asked, []string) *answer {
	return func(a *asked, _ []string) *answer {
		page, next := pageOf(made(make), a.field("cursor"), a.field("limit"), 100)
		return says(http.StatusOK, object{"ok": true, name: page, "response_metadata": object{"next_cursor": next},
			"has_more": next != ""})
	}
}

func slackSays(body object) func(*asked, []string) *answer {
	return func(*asked, []string) *answer { return says(http.StatusOK, body) }
}

func slackFields(pairs ...string) func(*asked, []string) *answer {
	return func(a *asked, _ []string) *answer {
		body := object{"ok": true, "ts": "1736942400.000100"}
		for _, name := range pairs {
			body[name] = a.field(name)
		}
		return says(http.StatusOK, body)
	}
}

const (
	slackUpload = "/upload/v1/"
	slackFile   = "F00000001"
)

// slackAPI has Slack's methods, by GET and by POST. A mistake is a status of 200.
func slackAPI() func(*asked) *answer {
	channel := func(n int) object {
		return object{"id": fmt.Sprintf("C%08d", n), "name": fmt.Sprintf("fig-%d", n), "is_channel": true}
	}
	user := func(n int) object { return object{"id": fmt.Sprintf("U%08d", n), "name": fmt.Sprintf("fig%d", n)} }
	message := func(n int) object {
		return object{"type": "message", "user": "U00000001", "text": "fig", "ts": fmt.Sprintf("%d.000100", 1_736_942_400-n)}
	}
	methods := map[string]func(*asked, []string) *answer{
		"conversations.list": slackList("channels", channel), "users.list": slackList("members", user),
		"conversations.history": slackList("messages", message), "conversations.replies": slackList("messages", message),
		"auth.test": slackSays(object{"ok": true, "url": "https://fig.slack.com/", "team": "Fig", "user": "fig",
			"team_id": "T00000001", "user_id": "U00000001"}),
		"chat.postMessage": slackFields("channel", "text"),
		"files.getUploadURLExternal": func(a *asked, _ []string) *answer {
			return says(http.StatusOK, object{"ok": true, "file_id": slackFile,
				"upload_url": a.base() + slackUpload + slackFile})
		},
		"files.completeUploadExternal": slackSays(object{"ok": true, "files": []object{{"id": slackFile, "title": "fig"}}}),
	}
	all := []route{{"POST " + slackUpload + "{}", func(a *asked, _ []string) *answer {
		return says(http.StatusOK, fmt.Sprintf("OK - %d", len(a.Body)))
	}}}
	for name, f := range methods {
		all = append(all, route{"POST /api/" + name, f}, route{"GET /api/" + name, f})
	}
	return routed(func(a *asked) *answer {
		if a.Keyed || a.field("token") != "" || strings.HasPrefix(a.path(), slackUpload) {
			return nil
		}
		return noKey(http.StatusOK, object{"ok": false, "error": "not_authed"})
	}, all...)
}

// githubList pages by a number. Its links are absolute, as GitHub's are.
func githubList(make func(a *asked, n int) object, wrap func(page []object) any) func(*asked, []string) *answer {
	return func(a *asked, _ []string) *answer {
		size, err := strconv.Atoi(cmp.Or(a.field("per_page"), "30"))
		if err != nil || size < 1 {
			size = 30
		}
		size = min(size, 100)
		number, _ := strconv.Atoi(a.field("page"))
		number = max(number, 1)
		last := (entries + size - 1) / size
		all := made(func(n int) object { return make(a, n) })
		page, _ := pageOf(all, strconv.Itoa((min(number, last+1)-1)*size), strconv.Itoa(size), size)
		return &answer{status: http.StatusOK, body: func(r *reply) any {
			var links []string
			link := func(rel string, to int, there bool) {
				if there {
					q := a.URL.Query()
					q.Set("page", strconv.Itoa(to))
					links = append(links, fmt.Sprintf(`<%s%s?%s>; rel="%s"`, a.base(), a.path(), q.Encode(), rel))
				}
			}
			link("prev", number-1, number > 1)
			link("next", number+1, number < last)
			link("last", last, number < last)
			link("first", 1, number > 1)
			if len(links) > 0 {
				r.set("Link", strings.Join(links, ", "))
			}
			return wrap(page)
		}}
	}
}

func githubRepo(a *asked, n int) object {
	return object{"id": n, "name": fmt.Sprintf("fig-%d", n), "full_name": fmt.Sprintf("fig/fig-%d", n), "private": false,
		"url": fmt.Sprintf("%s/repos/fig/fig-%d", a.base(), n), "owner": object{"login": "fig", "id": 1}}
}

func githubIssue(a *asked, n int) object {
	return object{"id": n, "number": n, "title": fmt.Sprintf("Fig %d", n), "state": "open",
		"url": a.base() + a.path() + "/" + strconv.Itoa(n), "user": object{"login": "fig", "id": 1}}
}

func githubAPI() func(*asked) *answer {
	plain := func(page []object) any { return page }
	found := func(page []object) any {
		return object{"total_count": entries, "incomplete_results": false, "items": page}
	}
	one := func(status int, make func(a *asked, n int) object) func(*asked, []string) *answer {
		return func(a *asked, parts []string) *answer {
			o := make(a, 1)
			if title := a.field("title"); title != "" {
				o["title"] = title
			}
			return says(status, o)
		}
	}
	repos, issues := githubList(githubRepo, plain), githubList(githubIssue, plain)
	return routed(func(a *asked) *answer {
		if a.Keyed || a.Method == http.MethodGet && !strings.HasPrefix(a.path(), "/user/") && a.path() != "/user" &&
			a.path() != "/search/code" {
			return nil
		}
		return noKey(http.StatusUnauthorized, object{"message": "Requires authentication", "status": "401",
			"documentation_url": "https://docs.github.com/rest"})
	},
		route{"GET /user", func(a *asked, _ []string) *answer {
			return says(http.StatusOK, object{"login": "fig", "id": 1, "type": "User", "url": a.base() + "/users/fig"})
		}},
		route{"GET /user/repos", repos}, route{"GET /users/{}/repos", repos}, route{"GET /orgs/{}/repos", repos},
		route{"GET /repos/{}/{}", one(http.StatusOK, githubRepo)},
		route{"GET /repos/{}/{}/issues", issues}, route{"GET /repos/{}/{}/issues/{}", one(http.StatusOK, githubIssue)},
		route{"GET /repos/{}/{}/pulls", issues},
		route{"POST /repos/{}/{}/issues", one(http.StatusCreated, githubIssue)},
		route{"GET /search/issues", githubList(githubIssue, found)},
		route{"GET /search/code", githubList(githubRepo, found)},
		route{"GET /search/repositories", githubList(githubRepo, found)},
		route{"POST /repos/{}/{}/releases/{}/assets", func(a *asked, _ []string) *answer {
			return says(http.StatusCreated, object{"id": 1, "name": a.field("name"), "size": len(a.Body), "state": "uploaded"})
		}},
	)
}

func hubspotThing(n int) object {
	at := "2026-01-15T12:00:00.000Z"
	return object{"id": strconv.Itoa(n), "createdAt": at, "updatedAt": at, "archived": false,
		"properties": object{"email": fmt.Sprintf("fig%d@example.com", n), "hs_object_id": strconv.Itoa(n)}}
}

// hubspotList pages by the number of entries before, in the query or in the body.
func hubspotList(a *asked, _ []string) *answer {
	page, next := pageOf(made(hubspotThing), a.field("after"), a.field("limit"), 10)
	list := object{"results": page}
	if a.Method == http.MethodPost {
		list["total"] = entries
	}
	if next != "" {
		q := a.URL.Query()
		q.Set("after", next)
		list["paging"] = object{"next": object{"after": next, "link": a.base() + a.path() + "?" + q.Encode()}}
	}
	return says(http.StatusOK, list)
}

func hubspotAPI() func(*asked) *answer {
	one := func(a *asked, parts []string) *answer {
		o, status := hubspotThing(entries+1), http.StatusCreated
		if len(parts) > 1 {
			o["id"], status = parts[1], http.StatusOK
		}
		if properties, ok := a.fields()["properties"]; ok {
			o["properties"] = properties
		}
		return says(status, o)
	}
	return routed(keyed(noKey(http.StatusUnauthorized, object{"status": "error", "category": "INVALID_AUTHENTICATION",
		"correlationId": notionID(0),
		"message": "Authentication credentials not found. This API supports OAuth 2.0 authentication and you can find more " +
			"details at https://developers.hubspot.com/docs/methods/auth/oauth-overview"})),
		route{"GET /crm/v3/objects/{}", hubspotList},
		route{"POST /crm/v3/objects/{}/search", hubspotList},
		route{"POST /crm/v3/objects/{}", one},
		route{"GET /crm/v3/objects/{}/{}", one},
		route{"PATCH /crm/v3/objects/{}/{}", one},
	)
}
