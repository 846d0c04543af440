package provider

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Providers of what people share: code, texts, songs, games, and those who publish them.
func opens() []*row {
	return []*row{
		gitlab(), twitch(), meta(), strava(), spotify(), riot(), roblox(), secEdgar(), arxiv(), crossref(), wikimedia(), npm(), google(), rapidAPI(),
	}
}

// GitLab sends the names of the IETF draft, with a reset in seconds since 1970. Where an endpoint
// has a limit of its own, the fields are still those of another limit.
func gitlab() *row {
	return &row{
		Provider: Provider{
			Name: "gitlab", Title: "GitLab",
			SDKs:  []Pattern{"gitlab.exceptions.*", "@gitbeaker/*"},
			Hosts: []string{"gitlab.com", "registry.gitlab.com"},
			Docs:  "https://docs.gitlab.com/administration/settings/user_and_ip_rate_limits/#response-headers", AsOf: "2026-11",
			Limited: Key, Banned: IP, Refusers: []Refuser{{"endpoint", Route}},
			Published: []Preset{
				{"gitlab", "gitlab.com, a user's API requests",
					"https://docs.gitlab.com/user/gitlab_com/rate_limits/#current-rate-limits", "2026-11", append([]Policy{per(2000, Requests, time.Minute, "", Key)}, gitlabEndpoints...)},
				{"gitlab:unauthenticated", "gitlab.com, without a token",
					"https://docs.gitlab.com/user/gitlab_com/rate_limits/#current-rate-limits", "2026-11", append([]Policy{per(500, Requests, time.Minute, "", IP)}, gitlabEndpoints...)},
			},
			Charges: gitlabCharges(),
		},
		is:     sends("RateLimit-Observed", "RateLimit-ResetTime", "Gitlab-LB", "X-Gitlab-Meta"),
		stated: []stated{{names: "RateLimit-*", used: "RateLimit-Observed", called: "RateLimit-Name", is: per(0, Requests, time.Minute, "", Key)}},
		read: func(r *reading) {
			// Limits for requests without a token count per address: throttle_unauthenticated_api,
			// throttle_unauthenticated_web.
			for i := range r.Policies {
				if strings.Contains(r.Policies[i].Name, "unauthenticated") {
					r.Policies[i].Scope = IP
				}
			}
			for i := range r.Limits {
				if strings.Contains(r.Limits[i].Policy, "unauthenticated") {
					r.Limits[i].Scope = IP
				}
			}
		},
		refuse: []refused{{path: "message.error", is: []Pattern{"This endpoint has been requested*"}, why: RateLimited, by: "endpoint"}},
	}
}

// gitlabEndpoints are of endpoints, for each user, or for an address without a token.
var gitlabEndpoints = append([]Policy{
	of("GET projects", named("projects", per(2000, Requests, 10*time.Minute, "", Resource))),
	of("address GET projects", named("projects without a key", per(400, Requests, 10*time.Minute, "", Resource))),
	of("300/10min *", named("300/10min", per(300, Requests, 10*time.Minute, "", Resource))),
}, ofClasses("", time.Minute, "50/min", "60/min", "100/min", "120/min", "200/min", "240/min", "300/min", "400/min", "600/min")...)

// gitlabCharges: some endpoints have a minute of their own for each user, over all projects. A row
// without a resource is of what lies below the endpoint that follows.
func gitlabCharges() []Charge {
	endpoints := func(lines string) []Charge {
		return rowsOf("/api/v4/", lines, func(class, on string) Charge {
			if class == "-" {
				return Charge{On: on}
			}
			return Charge{On: on, Resource: class + " " + strings.ReplaceAll(strings.Replace(on, "/api/v4/", "", 1), "*", "ID")}
		})
	}
	search := func(path string) Charge { return Charge{On: "GET /api/v4/" + path, Resource: "100/min GET search"} }
	return slices.Concat(
		from("https://docs.gitlab.com/security/rate_limits/#project-jobs-api-endpoint", "2026-11", endpoints(`
			600/min GET projects/*/jobs`)),
		from("https://docs.gitlab.com/user/gitlab_com/rate_limits/#current-rate-limits", "2026-11", []Charge{
			search("search"), search("projects/*/search"), search("groups/*/search"),
			{On: "GET /api/v4/projects", Keyless: true, Resource: "address GET projects"},
			{On: "GET /api/v4/projects", Resource: "GET projects"}}, endpoints(`
			60/min POST projects/*/notes groups/*/notes
			200/min POST projects/*/issues
			200/min GET projects/*/members/all
			- GET projects/*/*
			400/min GET projects/*
			300/min GET users/*/projects
			100/min GET users/*/contributed_projects users/*/starred_projects users/*/followers users/*/following
			240/min GET users/*/status
			120/min GET users/*/keys users/*/keys/* users/*/gpg_keys users/*/gpg_keys/*
			- GET users/*/*
			300/10min GET users/*
			50/min GET groups
			600/min GET groups/*/projects
			- GET groups/*/*
			400/min GET groups/*`)))
}

// Twitch has a bucket of points, and says when it will be full again, as an epoch.
func twitch() *row {
	return &row{
		Provider: Provider{
			Name: "twitch", Title: "Twitch",
			Hosts: []string{"api.twitch.tv"},
			Docs:  "https://dev.twitch.tv/docs/api/guide/#twitch-rate-limits", AsOf: "2026-11",
			Limited: Key, Banned: Key,
			Published: []Preset{
				{"twitch", "points of a client and user", "https://dev.twitch.tv/docs/api/guide/#twitch-rate-limits", "2026-11", []Policy{per(800, Requests, time.Minute, Bucket, Key)}},
			},
		},
		stated: []stated{{names: "Ratelimit-*", is: per(0, Requests, 0, Bucket, Key), full: true}},
		// This is a number of subscriptions; waiting does not make it larger.
		refuse: []refused{{path: "message", is: []Pattern{"*subscription*", "*transports limit*"}, why: None}},
	}
}

// Meta states the used part in percent, for an app, a page, an advertiser or a business. Calls
// count even while it refuses.
func meta() *row {
	return &row{
		Provider: Provider{
			Name: "meta", Title: "Meta",
			Pages: []string{"paging/next", "paging/previous"},
			Hosts: []string{"graph.facebook.com", "graph.instagram.com", "graph.threads.net", "graph-video.facebook.com"},
			Docs:  "https://developers.facebook.com/docs/graph-api/overview/rate-limiting/", AsOf: "2026-11",
			Limited: Key, Banned: Key, Refusers: theirOwn,
		},
		is: sends("X-App-Usage", "X-Business-Use-Case-Usage", "X-Ad-Account-Usage", "X-Page-Usage", "X-Fb-Trace-Id"),
		read: func(r *reading) {
			wait := time.Duration(0)
			for _, name := range []string{"X-App-Usage", "X-Page-Usage", "X-Ad-Account-Usage", "X-Fb-Ads-Insights-Throttle", "X-Business-Use-Case-Usage"} {
				wait = max(wait, r.percents(name))
			}
			if r.Status >= 400 && r.RetryAfter == 0 {
				r.RetryAfter = wait
			}
		},
		refuse: []refused{
			{path: "error.code", is: []Pattern{"368"}, why: Banned, by: "="},
			{path: "error.code", is: []Pattern{"4", "17", "32", "341", "613", "80000", "80001", "80002", "80003", "80004", "80005", "80006", "80008", "80009", "80014", "130429", "131048", "131056"}, why: RateLimited, by: "="},
		},
	}
}

// percents reads how many percent are used, from an object or from objects in lists by the name of
// a business. It returns how long the field says to stay away.
func (r *reading) percents(name string) (wait time.Duration) {
	v, ok := r.field(name)
	if !ok {
		return 0
	}
	var tree any
	if err := json.Unmarshal([]byte(v), &tree); err != nil {
		r.problem("%s: %q is no JSON; ignored", name, clip(v))
		return 0
	}
	used := -1.0
	walk(tree, func(key string, n float64) {
		switch key {
		case "call_count", "total_cputime", "total_time", "acc_id_util_pct", "app_id_util_pct":
			used = max(used, n)
		case "estimated_time_to_regain_access":
			wait = max(wait, min(time.Duration(max(n, 0)*float64(time.Minute)), MaxWait))
		case "reset_time_duration":
			if used >= 100 {
				wait = max(wait, min(time.Duration(max(n, 0)*float64(time.Second)), MaxWait))
			}
		}
	})
	if used >= 0 {
		n := min(int64(used), 100)
		p := Policy{Name: strings.ToLower(strings.TrimPrefix(name, "X-")), Unit: Other, Scope: Key, Limit: 100}
		r.add(p, ServiceLimit{Used: Count{n, true}, Remaining: Count{100 - n, true}})
	}
	return wait
}

// walk calls f for every number in a tree, with the key that it stands under.
func walk(tree any, f func(key string, n float64)) {
	switch t := tree.(type) {
	case map[string]any:
		for _, k := range keys(t) {
			if n, ok := t[k].(float64); ok {
				f(k, n)
			} else {
				walk(t[k], f)
			}
		}
	case []any:
		for _, v := range t[:min(len(t), maxItems)] {
			walk(v, f)
		}
	}
}

// Strava sends pairs: for a quarter of an hour and for a day of the clock, both for all requests
// and for those that read.
func strava() *row {
	return &row{
		Provider: Provider{
			Name: "strava", Title: "Strava",
			Hosts: []string{"www.strava.com"},
			Docs:  "https://developers.strava.com/docs/rate-limits", AsOf: "2026-11",
			Limited: Key, Banned: Key,
			Published: []Preset{
				{"strava", "an app, all its users", "https://developers.strava.com/docs/rate-limits", "2026-11",
					[]Policy{named("15 minutes", per(200, Requests, 15*time.Minute, Calendar, Key)), named("day", per(2000, Requests, day, Calendar, Key))}},
			},
		},
		is: sends("X-ReadRateLimit-Limit", "X-ReadRateLimit-Usage", "X-RateLimit-Usage"),
		stated: []stated{
			{nth: 1, limit: "X-RateLimit-Limit", used: "X-RateLimit-Usage", remaining: "-", reset: "-", is: named("15 minutes", per(0, Requests, 15*time.Minute, Calendar, Key))},
			{nth: 2, limit: "X-RateLimit-Limit", used: "X-RateLimit-Usage", remaining: "-", reset: "-", is: named("day", per(0, Requests, day, Calendar, Key))},
			{nth: 1, limit: "X-ReadRateLimit-Limit", used: "X-ReadRateLimit-Usage", remaining: "-", reset: "-", is: named("reads, 15 minutes", per(0, Requests, 15*time.Minute, Calendar, Key))},
			{nth: 2, limit: "X-ReadRateLimit-Limit", used: "X-ReadRateLimit-Usage", remaining: "-", reset: "-", is: named("reads, day", per(0, Requests, day, Calendar, Key))},
		},
		refuse: []refused{
			{path: "message", is: []Pattern{"*athletes*"}, why: Unpaid}, // this is a number of users; waiting does not make it larger
			{path: "message", is: []Pattern{"Rate Limit Exceeded"}, why: RateLimited},
		},
	}
}

// Spotify says nothing but Retry-After, and not always that; it may be a day.
func spotify() *row {
	return &row{
		Provider: Provider{
			Name: "spotify", Title: "Spotify",
			Pages: []string{"next", "previous", "tracks/next", "albums/next", "artists/next", "playlists/next", "shows/next", "episodes/next", "audiobooks/next"},
			SDKs:  []Pattern{"spotipy.*"},
			Hosts: []string{"api.spotify.com"},
			Docs:  "https://developer.spotify.com/documentation/web-api/concepts/rate-limits", AsOf: "2026-11",
			Silent: true, Limited: Key, Banned: Key,
			Published: []Preset{
				{"spotify", "an app; how many is not published",
					"https://developer.spotify.com/documentation/web-api/concepts/rate-limits", "2026-11",
					[]Policy{named("30 seconds", per(0, Requests, 30*time.Second, Rolling, Key))}},
			},
		},
		refuse: []refused{{status: []int{429}, why: RateLimited, wait: 30 * time.Second}},
	}
}

// Riot sends lists of limits of an app and of a method, 20:1,100:120, and says which of them
// refused. The windows begin with their first request.
func riot() *row {
	return &row{
		Provider: Provider{
			Name: "riot", Title: "Riot Games",
			Hosts: []string{".api.riotgames.com"},
			Docs:  "https://developer.riotgames.com/docs/portal#web-apis_rate-limiting", AsOf: "2026-11",
			Limited: Route, Banned: Key, Refusers: []Refuser{{"application", Key}, {"method", Route}, {"service", Route}},
			Published: []Preset{
				{"riot:development", "a development key, per region", "https://developer.riotgames.com/docs/portal#web-apis_rate-limiting", "2026-11",
					[]Policy{named("1 second", per(20, Requests, time.Second, Anchored, Key)), named("2 minutes", per(100, Requests, 2*time.Minute, Anchored, Key))}},
			},
		},
		is: sends("X-App-Rate-Limit", "X-Method-Rate-Limit", "X-Rate-Limit-Type"),
		read: func(r *reading) {
			r.riot("X-App-Rate-Limit", "app", Key)
			r.riot("X-Method-Rate-Limit", "method", Route)
		},
		refuse: []refused{{header: "X-Rate-Limit-Type", is: []Pattern{"application", "method", "service"}, why: RateLimited, by: "="}},
	}
}

// riot reads limits from one field, and what is used of each from another.
func (r *reading) riot(name, whose string, scope Scope) {
	limits, _ := r.field(name)
	counts, _ := r.field(name + "-Count")
	used := map[string]Count{}
	for item := range strings.SplitSeq(counts, ",") {
		if n, window, ok := strings.Cut(strings.TrimSpace(item), ":"); ok && len(used) < maxItems {
			used[window] = r.number(name+"-Count", n)
		}
	}
	for i, item := range strings.Split(limits, ",") {
		n, window, ok := strings.Cut(strings.TrimSpace(item), ":")
		if !ok || i == maxItems {
			continue
		}
		d, err := seconds(window)
		if d, ok = r.bound(name, window, d, err); !ok || d == 0 {
			continue
		}
		p := Policy{Name: whose + ", " + windowName(d), Unit: Requests, Scope: scope, Rule: Anchored, Limit: r.number(name, n).N, Window: d}
		l := ServiceLimit{Used: used[window]}
		if l.Used.OK && p.Limit > 0 {
			l.Remaining = Count{max(0, p.Limit-l.Used.N), true}
		}
		r.add(p, l)
	}
}

// Roblox speaks as Envoy does: X-RateLimit fields with policies, and a reset that counts from now.
func roblox() *row {
	return &row{
		Provider: Provider{
			Name: "roblox", Title: "Roblox",
			Hosts: []string{"apis.roblox.com", ".roblox.com"},
			Docs:  "https://create.roblox.com/docs/cloud/reference/rate-limits", AsOf: "2026-11",
			Limited: Key, Banned: IP,
		},
		read: func(r *reading) { r.anybody() },
	}
}

// EDGAR refuses with a page. Requests during a refusal prolong it.
func secEdgar() *row {
	return &row{
		Provider: Provider{
			Name: "sec-edgar", Title: "SEC EDGAR",
			Hosts: []string{"www.sec.gov", "data.sec.gov", "efts.sec.gov"},
			Docs:  "https://www.sec.gov/os/accessing-edgar-data", AsOf: "2026-11",
			Silent: true, Limited: IP, Banned: IP,
			Published: []Preset{{"sec-edgar", "per user, over all addresses", "https://www.sec.gov/os/accessing-edgar-data", "2026-11", []Policy{per(10, Requests, time.Second, "", IP)}}},
		},
		refuse: []refused{
			{is: []Pattern{"Request Rate Threshold Exceeded"}, why: RateLimited, wait: 10 * time.Minute, sure: true},
		},
	}
}

func arxiv() *row {
	return &row{
		Provider: Provider{
			Name: "arxiv", Title: "arXiv",
			Hosts: []string{"export.arxiv.org", "arxiv.org", "oaipmh.arxiv.org"},
			Docs:  "https://info.arxiv.org/help/api/tou.html#rate-limits", AsOf: "2026-11",
			Silent: true, Limited: IP, Banned: IP,
			Published: []Preset{
				{"arxiv", "one at a time, over all machines of a user", "https://info.arxiv.org/help/api/tou.html#rate-limits", "2026-11",
					[]Policy{per(1, Requests, 3*time.Second, "", IP), named("concurrent", per(1, Concurrent, 0, Concurrency, IP))}},
			},
		},
		refuse: []refused{{status: []int{429}, why: RateLimited, wait: 3 * time.Second}},
	}
}

func crossref() *row {
	return &row{
		Provider: Provider{
			Name: "crossref", Title: "Crossref",
			Hosts: []string{"api.crossref.org"},
			Docs:  "https://www.crossref.org/documentation/retrieve-metadata/rest-api/access-and-authentication/", AsOf: "2026-11",
			Limited: IP, Banned: IP,
			Published: []Preset{
				{"crossref:public", "single records, by address", "https://www.crossref.org/documentation/retrieve-metadata/rest-api/access-and-authentication/", "2026-11",
					[]Policy{per(5, Requests, time.Second, "", IP), named("concurrent", per(1, Concurrent, 0, Concurrency, IP))}},
				{"crossref:polite", "single records, with an address to write to", "https://www.crossref.org/documentation/retrieve-metadata/rest-api/access-and-authentication/", "2026-11",
					[]Policy{per(10, Requests, time.Second, "", IP), named("concurrent", per(3, Concurrent, 0, Concurrency, IP))}},
			},
		},
		is: sends("X-Rate-Limit-Interval", "X-Api-Pool"),
		stated: []stated{
			{nth: 1, names: "X-Rate-Limit-*", window: "X-Rate-Limit-Interval", is: per(0, Requests, 0, "", IP)},
			{nth: 1, names: "X-RateLimit-*", window: "X-RateLimit-Interval", is: per(0, Requests, 0, "", IP)},
			{limit: "X-Concurrency-Limit", remaining: "-", used: "-", reset: "-", is: named("concurrent", per(0, Concurrent, 0, Concurrency, IP))},
		},
	}
}

// MediaWiki answers errors with status 200: when its database is loaded, and for limits of an
// action.
func wikimedia() *row {
	return &row{
		Provider: Provider{
			Name: "wikimedia", Title: "Wikimedia",
			Hosts: []string{".wikipedia.org", ".wikidata.org", ".wikimedia.org", ".wiktionary.org", ".mediawiki.org", ".wikisource.org"},
			Docs:  "https://www.mediawiki.org/wiki/Manual:Maxlag_parameter", AsOf: "2026-11",
			Silent: true, Limited: Key, Banned: IP, Refusers: []Refuser{{"ratelimited", Route}},
		},
		inBody: true,
		is:     sends("MediaWiki-API-Error", "X-Database-Lag"),
		refuse: []refused{
			{status: gentle, header: "MediaWiki-API-Error", is: []Pattern{"maxlag"}, why: Overloaded, wait: 5 * time.Second},
			{status: gentle, path: "error.code", is: []Pattern{"maxlag"}, why: Overloaded, wait: 5 * time.Second},
			{status: gentle, header: "MediaWiki-API-Error", is: []Pattern{"ratelimited"}, why: RateLimited, by: "ratelimited"},
			{status: gentle, path: "error.code", is: []Pattern{"ratelimited"}, why: RateLimited, by: "ratelimited"},
			{status: gentle, path: "error.code", is: []Pattern{"readonly"}, why: Overloaded},
		},
	}
}

func npm() *row {
	return &row{
		Provider: Provider{
			Name: "npm", Title: "npm",
			Hosts: []string{"registry.npmjs.org", "api.npmjs.org"},
			Docs:  "https://docs.npmjs.com/policies/open-source-terms", AsOf: "2026-11",
			Silent: true, Limited: IP, Banned: IP,
		},
		is:     sends("Npm-Notice"),
		refuse: []refused{{status: []int{429}, why: RateLimited}},
	}
}

// Google's older APIs refuse with 403 and a reason, its newer ones as Gemini does. Days begin at
// midnight Pacific time.
func google() *row {
	return &row{
		Provider: Provider{
			Name: "google", Title: "Google APIs",
			SDKs:  []Pattern{"google.api_core.*", "googleapiclient.*", "googleapis", "gaxios"},
			Hosts: []string{"www.googleapis.com", ".googleapis.com"},
			Docs:  "https://developers.google.com/workspace/drive/api/guides/limits", AsOf: "2026-11",
			Silent: true, Limited: Key, Banned: Key, Refusers: []Refuser{{"*PerUser*", Key}, {"*", ""}},
			Published: []Preset{
				{"google:drive", "a user of a project, units", "https://developers.google.com/drive/api/guides/limits", "2026-11", []Policy{per(325_000, Weight, time.Minute, "", Key)}},
				{"google:drive-queries", "a user of a project that used Drive before May 2026",
					"https://developers.google.com/drive/api/guides/limits", "2026-11",
					[]Policy{named("queries", per(12_000, Requests, time.Minute, "", Key))}},
				{"google:youtube", "a project, units; searches and new videos apart", "https://developers.google.com/youtube/v3/determine_quota_cost", "2026-11",
					[]Policy{local(pacificTime, per(10_000, Weight, day, Calendar, Key)),
						local(pacificTime, of("search.list", named("searches", per(100, Requests, day, Calendar, Resource)))),
						local(pacificTime, of("videos.insert", named("new videos", per(100, Requests, day, Calendar, Resource))))}},
			},
			Charges: slices.Concat(youtubeCharges(), driveCharges()),
		},
		is:   func(r *Response) bool { return r.Status >= 400 && mentions(r, `"usageLimits"`) },
		read: func(r *reading) { r.google() },
		refuse: []refused{
			{path: "error.errors.*.reason", is: []Pattern{"dailyLimitExceeded*", "quotaExceeded", "variableTermLimitExceeded", "sharingRateLimitExceeded"}, why: QuotaExhausted, by: "=",
				note: "a quota of a day is exhausted; the documentation says it is back at midnight Pacific time"},
			{path: "error.errors.*.reason", is: []Pattern{"concurrentLimitExceeded"}, why: TooMany, by: "="},
			{path: "error.errors.*.reason", is: []Pattern{"rateLimitExceeded", "userRateLimitExceeded"}, why: RateLimited, by: "="},
		},
	}
}

// youtubeCharges: a list costs a unit, a change fifty, and captions more. Uploads have a path of their own.
func youtubeCharges() []Charge {
	return from("https://developers.google.com/youtube/v3/determine_quota_cost", "2026-11", []Charge{
		{On: "GET /youtube/v3/search", Resource: "search.list"},
		{On: "POST /youtube/v3/videos", Resource: "videos.insert"}, {On: "POST /upload/youtube/v3/videos", Resource: "videos.insert"},
		cost("POST /youtube/v3/captions", 400, Weight), cost("POST /upload/youtube/v3/captions", 400, Weight),
		cost("PUT /youtube/v3/captions", 450, Weight), cost("PUT /upload/youtube/v3/captions", 450, Weight),
		cost("GET /youtube/v3/captions*", 50, Weight),
		cost("GET /youtube/v3/*", 1, Weight), cost("* /youtube/v3/*", 50, Weight), cost("* /upload/youtube/v3/*", 50, Weight),
	})
}

// driveCharges: a download costs most, then a list, a change, and all else. A list ends with the name of a collection.
// The page names a method or two for each; the rest is by their kind.
func driveCharges() []Charge {
	of := func(n int64, on ...string) (all []Charge) {
		for _, one := range on {
			all = append(all, cost(one, n, Weight))
		}
		return all
	}
	return from("https://developers.google.com/workspace/drive/api/guides/limits", "2026-09",
		of(200, "GET /drive/*?alt=media", "GET /drive/*/export", "POST /drive/*/download"),
		of(100, "GET /drive/*/files", "GET /drive/*/changes", "GET /drive/*/drives", "GET /drive/*/teamdrives",
			"GET /drive/*/apps", "GET /drive/*/comments", "GET /drive/*/replies", "GET /drive/*/permissions", "GET /drive/*/revisions",
			"GET /drive/*/listLabels", "GET /drive/*/accessproposals", "GET /drive/*/children", "GET /drive/*/parents",
			"GET /drive/*/properties"),
		of(5, "GET /drive/*", "POST /drive/*/watch", "POST /drive/*/stop"),
		of(50, "* /drive/*", "* /upload/drive/*"))
}

// RapidAPI counts on behalf of the API behind it, mostly per month.
func rapidAPI() *row {
	return &row{
		Provider: Provider{
			Name: "rapidapi", Title: "RapidAPI",
			Hosts: []string{".p.rapidapi.com", ".rapidapi.com"},
			Docs:  "https://docs.rapidapi.com/docs/response-headers", AsOf: "2026-11",
			Limited: Key, Banned: Key,
		},
		is:     func(r *Response) bool { return sendsPrefix(r.Header, "X-Rapidapi-") },
		stated: []stated{{names: "X-RateLimit-Requests-*", is: per(0, Requests, 0, "", Key)}},
		refuse: []refused{{path: "message", is: []Pattern{"*MONTHLY quota*", "*DAILY quota*"}, why: QuotaExhausted}},
	}
}
