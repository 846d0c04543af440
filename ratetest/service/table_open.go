package service

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/provider"
)

// opens are providers of code, videos, songs and games.
func opens() []*tableRow {
	return []*tableRow{gitlab(), twitch(), strava(), spotify(), riot(), youtube()}
}

func gitlab() *tableRow {
	return &tableRow{
		name: "gitlab", about: "GitLab's API: RateLimit fields with an epoch, and limits of endpoints that the fields do " +
			"not show",
		limits: []limitSet{
			set("gitlab", policy("requests", 2000, requests, time.Minute, calendar, perKey)),
			set("gitlab:unauthenticated", policy("requests", 500, requests, time.Minute, calendar, perIP)),
		},
		extra: append(classes(time.Minute, calendar, "50/min", "60/min", "100/min", "120/min", "200/min", "240/min", "300/min", "400/min",
			"600/min"), policy("300/10min", 300, requests, 10*time.Minute, calendar, perResource), policy("projects", 2000, requests, 10*time.Minute, calendar, perResource),
			policy("projects without a key", 400, requests, 10*time.Minute, calendar, perResource)),
		assumed: "in minutes of the clock; the limits of endpoints are of a user, over all projects",
		cost: func(a *asked, p *provider.Policy) int64 {
			class, _ := gitlabEndpoint(a)
			if class == "projects" && !a.Keyed {
				class = "projects without a key"
			}
			return one(p.Scope != perResource || p.Name == class)
		},
		resource: func(a *asked) string {
			_, endpoint := gitlabEndpoint(a)
			return endpoint
		},
		speak: func(a *reply) {
			a.set("Gitlab-Lb", "ratetest")
			l := a.limit("requests")
			a.fields("RateLimit-", l, secondOf(l.Whole))
			a.set("RateLimit-Observed", l.Used())
			a.set("RateLimit-Name",
				map[bool]string{true: "throttle_unauthenticated_api", false: "throttle_authenticated_api"}[l.Scope == provider.IP])
			switch {
			case a.by == nil:
			case a.by.Scope == perResource:
				a.body = object{"message": object{"error": "This endpoint has been requested too many times. Try again later."}}
			default:
				a.set("Content-Type", "text/plain")
				a.set("RateLimit-ResetTime", atSecond(l.Whole).UTC().Format(http.TimeFormat))
				a.body = "Retry later\n"
				a.retryAfter()
			}
		},
	}
}

// gitlabEndpoint returns the class of an endpoint with a limit of its own, and its name. Both are
// empty if it has none.
func gitlabEndpoint(a *asked) (class, endpoint string) {
	kind, rest, _ := strings.Cut(strings.TrimPrefix(a.path(), "/api/v4/"), "/")
	_, below, _ := strings.Cut(rest, "/")
	endpoint = a.Method + " " + kind
	if rest != "" {
		endpoint += "/:id"
	}
	if below != "" {
		first, _, _ := strings.Cut(below, "/")
		endpoint += "/" + first
	}
	switch {
	case a.Method == http.MethodGet && (kind == "search" || below == "search"):
		return "100/min", "a search"
	case a.Method == http.MethodGet && kind == "projects" && below == "members/all":
		return "200/min", "all members of a project"
	case a.Method == http.MethodPost && strings.HasSuffix(below, "/notes"):
		return "60/min", "POST notes of " + kind
	case a.Method == http.MethodGet && below != "" && below != strings.TrimPrefix(endpoint, "GET "+kind+"/:id/") &&
		!strings.Contains(below, "keys/"):
		return "", "" // something below one of these
	}
	return map[string]string{
		"GET projects": "projects", "GET projects/:id": "400/min", "GET projects/:id/jobs": "600/min",
		"GET users/:id/projects": "300/min", "GET users/:id/contributed_projects": "100/min",
		"GET users/:id/starred_projects": "100/min", "GET users/:id/followers": "100/min", "GET users/:id/following": "100/min",
		"GET users/:id/status": "240/min", "GET users/:id/keys": "120/min", "GET users/:id/gpg_keys": "120/min",
		"GET users/:id": "300/10min", "POST projects/:id/issues": "200/min",
		"GET groups": "50/min", "GET groups/:id": "400/min", "GET groups/:id/projects": "600/min",
	}[endpoint], endpoint
}

func twitch() *tableRow {
	return &tableRow{
		name: "twitch", about: "Twitch's API: a bucket of points, and as an epoch when it is full again",
		limits:  []limitSet{set("twitch", policy("requests", 800, requests, time.Minute, inBucket, perKey))},
		assumed: "every request costs a point; 800 flow in per minute, as is documented, where 600 have been measured",
		speak: func(a *reply) {
			l := a.limit("requests")
			a.fields("Ratelimit-", l, secondOf(l.Whole))
			a.refused(object{"error": "Too Many Requests", "status": 429, "message": "Request limit exceeded"})
		},
	}
}

func strava() *tableRow {
	return &tableRow{
		name: "strava", about: "Strava's API: pairs of a quarter of an hour and a day of the clock, of all requests and of " +
			"those that read",
		limits: []limitSet{set("strava", policy("15 minutes", 200, requests, 15*time.Minute, calendar, perKey),
			policy("day", 2000, requests, day, calendar, perKey))},
		extra: []provider.Policy{
			policy("reads, 15 minutes", 100, requests, 15*time.Minute, calendar, perKey),
			policy("reads, day", 1000, requests, day, calendar, perKey),
		},
		assumed:      "whatever is not GET or HEAD is no read",
		refusedCount: true,
		cost: func(a *asked, p *provider.Policy) int64 {
			return one(!strings.HasPrefix(p.Name, "reads") || a.Method == http.MethodGet || a.Method == http.MethodHead)
		},
		speak: func(a *reply) {
			pair := func(prefix, whose string) {
				if short, long := a.limit(whose+"15 minutes"), a.limit(whose+"day"); short != nil && long != nil {
					a.set(prefix+"Limit", fmt.Sprintf("%d,%d", short.Limit, long.Limit))
					a.set(prefix+"Usage", fmt.Sprintf("%d,%d", short.Used(), long.Used()))
				}
			}
			pair("X-RateLimit-", "")
			pair("X-ReadRateLimit-", "reads, ")
			a.refused(object{"message": "Rate Limit Exceeded",
				"errors": []object{{"resource": "Application", "field": "rate limit", "code": "exceeded"}}})
		},
	}
}

func spotify() *tableRow {
	return &tableRow{
		name: "spotify", about: "Spotify's API: Retry-After when it refuses, up to a day, and nothing before",
		limits: []limitSet{set("spotify", policy("30 seconds", 90, requests, 30*time.Second, rolling, perKey),
			policy("day", 20_000, requests, day, anchored, perKey))},
		assumed: "both numbers are made up, as Spotify publishes none; the day begins with a request, as the waits that " +
			"people report do",
		speak: func(a *reply) {
			if a.refused(object{"error": object{"status": 429, "message": "API rate limit exceeded"}}) {
				a.retryAfter()
			}
		},
	}
}

func riot() *tableRow {
	return &tableRow{
		name: "riot", about: "Riot's API: lists of limits of a key and of a method, in windows that begin with a request; " +
			"a field says which refused",
		limits: []limitSet{set("riot:development", policy("1 second", 20, requests, time.Second, anchored, perKey),
			policy("2 minutes", 100, requests, 2*time.Minute, anchored, perKey))},
		extra:   []provider.Policy{policy("method", 2000, requests, time.Minute, anchored, perRoute)},
		assumed: "every method has the limit that answers most often show",
		speak: func(a *reply) {
			list := func(field string, limits ...*standing) {
				var most, used []string
				for _, l := range limits {
					most, used = append(most, fmt.Sprintf("%d:%d", l.Limit, wholeSeconds(l.Window))),
						append(used, fmt.Sprintf("%d:%d", l.Used(), wholeSeconds(l.Window)))
				}
				a.set(field, strings.Join(most, ","))
				a.set(field+"-Count", strings.Join(used, ","))
			}
			list("X-App-Rate-Limit", a.limit("1 second"), a.limit("2 minutes"))
			list("X-Method-Rate-Limit", a.limit("method"))
			if a.refused(object{"status": object{"message": "Rate limit exceeded", "status_code": 429}}) {
				a.set("X-Rate-Limit-Type", map[bool]string{true: "method", false: "application"}[a.by.Name == "method"])
				a.retryAfter()
			}
		},
	}
}

func youtube() *tableRow {
	return &tableRow{
		name: "google", about: "YouTube's Data API: units of a day of a project; searches and new videos apart; " +
			"Drive's quota: units of a minute, and its older one: queries of a minute",
		limits: []limitSet{set("google:youtube", policy("weight", 10_000, weight, day, calendar, perKey),
			policy("searches", 100, requests, day, calendar, perResource),
			policy("new videos", 100, requests, day, calendar, perResource)),
			set("google:drive", policy("weight", 325_000, weight, time.Minute, calendar, perKey)),
			set("google:drive-queries", policy("queries", 12_000, requests, time.Minute, calendar, perKey))},
		assumed:  "days begin at midnight Pacific Standard Time, in summer too; minutes are those of the clock",
		midnight: 8 * time.Hour,
		cost: func(a *asked, p *provider.Policy) int64 {
			switch {
			case p.Name == "queries":
				return one(!strings.Contains(a.path(), "/youtube/"))
			case p.Window == time.Minute:
				return driveUnits(a)
			}
			if call := youtubeCall(a); call != "weight" || p.Name != "weight" {
				return one(call == p.Name)
			}
			list := a.Method == http.MethodGet
			switch captions := strings.Contains(a.path(), "/captions"); {
			case captions && a.Method == http.MethodPost:
				return 400
			case captions && a.Method == http.MethodPut:
				return 450
			case captions, !list:
				return 50
			}
			return 1
		},
		resource: youtubeCall,
		speak: func(a *reply) {
			if a.refused(object{"error": object{"code": 403, "message": "The request cannot be completed because you have " +
				"exceeded your quota.", "errors": []object{{"domain": "youtube.quota", "reason": "quotaExceeded"}}}}) {
				a.status = http.StatusForbidden
			}
			if a.by != nil && a.by.Window == time.Minute {
				a.body = object{"error": object{"code": 403, "message": "User Rate Limit Exceeded",
					"errors": []object{{"domain": "usageLimits", "reason": "userRateLimitExceeded"}}}}
			}
		},
	}
}

// driveUnits returns what a call of Drive costs, by the table "Per-method quota usage" of
// developers.google.com/workspace/drive/api/guides/limits, looked up in 2026-09. The table has an example for each kind
// of call.
func driveUnits(a *asked) int64 {
	path, uploads := strings.CutPrefix(a.path(), "/upload")
	parts := strings.Split(path, "/")
	const before = 3 // "", drive, v3
	if len(parts) <= before || parts[1] != "drive" {
		return 0 // another API
	}
	last, reads := parts[len(parts)-1], a.Method == http.MethodGet || a.Method == http.MethodHead
	isOf := func(names ...string) bool { return slices.Contains(names, last) }
	switch {
	case uploads:
		return 50
	case isOf("export", "download"), reads && a.URL.Query().Get("alt") == "media":
		return 200
	case isOf("watch", "stop", "generateIds", "startPageToken", "about"):
		return 5
	case reads && (len(parts)-before)%2 == 1: // collections and items are in turn
		return 100
	case reads:
		return 5
	}
	return 50
}

// youtubeCall returns the limit in which a call counts; empty: none.
func youtubeCall(a *asked) string {
	switch path := strings.TrimPrefix(a.path(), "/upload"); {
	case a.Method == http.MethodGet && path == "/youtube/v3/search":
		return "searches"
	case a.Method == http.MethodPost && path == "/youtube/v3/videos":
		return "new videos"
	}
	if strings.HasPrefix(a.path(), "/drive/") { // another API
		return ""
	}
	return "weight" // invalid requests, too
}
