package service

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/paceline-go/paceline/provider"
)

// ietfLimits returns the limits of the IETF draft's examples.
func ietfLimits() []provider.Policy {
	return []provider.Policy{
		policy("burst", 100, requests, time.Minute, anchored, perKey),
		policy("daily", 1000, requests, day, anchored, perKey),
	}
}

// plains are rows of no particular provider: the drafts, and common header fields.
func plains() []*tableRow {
	return []*tableRow{
		ietfRow(),
		cloudflareRow(),
		genericRow(),
		xRatelimitEpochRow(),
		xRatelimitSecondsRow(),
	}
}

func ietfRow() *tableRow {
	return &tableRow{
		name: "ietf", about: "The IETF draft's RateLimit fields; ietf:07 and ietf:06 are its earlier generations",
		limits:  []limitSet{{"ietf", ietfLimits()}, {"ietf:07", ietfLimits()}, {"ietf:06", ietfLimits()}},
		assumed: "both limits are the draft's examples; it leaves open how they count: in intervals that begin with a request",
		speak: func(a *reply) {
			var windows []string
			for _, l := range a.limits {
				windows = append(windows, fmt.Sprintf("%d;w=%d", l.Limit, wholeSeconds(l.Window)))
			}
			switch l := a.tightest(); a.preset {
			case "ietf:07":
				a.set("RateLimit", fmt.Sprintf("limit=%d, remaining=%d, reset=%d", l.Limit, l.Left, a.in(l.Whole)))
				a.set("RateLimit-Policy", strings.Join(windows, ", "))
			case "ietf:06":
				a.fields("RateLimit-", l, a.in(l.Whole))
				a.set("RateLimit-Policy", strings.Join(windows, ", "))
			default:
				a.structured(ownName)
			}
			if a.refused(object{
				"type":              "https://iana.org/assignments/http-problem-types#quota-exceeded",
				"title":             "Request cannot be satisfied as assigned quota has been exceeded",
				"violated-policies": a.violated(),
			}) {
				a.set("Content-Type", "application/problem+json")
				a.retryAfter()
			}
		},
	}
}

func cloudflareRow() *tableRow {
	return &tableRow{
		name: "cloudflare", about: "Cloudflare's client API",
		limits: []limitSet{
			set("cloudflare", policy("requests", 1200, requests, 5*time.Minute, anchored, perKey)),
		},
		assumed: "in intervals that begin with a request",
		speak: func(a *reply) {
			a.structured(func(*standing) string { return "default" })
			if a.refused(object{
				"success": false, "errors": []object{{"code": 971,
					"message": "Please wait and consider throttling your request speed"}},
				"messages": []string{}, "result": nil,
			}) {
				a.retryAfter()
			}
		},
	}
}

func genericRow() *tableRow {
	return &tableRow{
		name: "generic", about: "Any server: 429 and Retry-After, in seconds, or with generic:date as a date",
		limits: []limitSet{
			set("generic", policy("requests", 100, requests, time.Minute, rolling, perKey)),
			set("generic:date", policy("requests", 100, requests, time.Minute, rolling, perKey)),
		},
		assumed: "the limit is made up",
		speak: func(a *reply) {
			l := a.tightest()
			a.set("X-RateLimit-Limit", l.Limit)
			a.set("X-RateLimit-Remaining", l.Left)
			if a.refused(object{"error": "too many requests"}) && a.wait > 0 {
				a.retryAfter()
				if a.preset == "generic:date" {
					a.set("Retry-After", atSecond(a.now.Add(a.wait)).UTC().Format(http.TimeFormat))
				}
			}
		},
	}
}

func xRatelimitEpochRow() *tableRow {
	return &tableRow{
		name: "x-ratelimit-epoch", about: "X-RateLimit fields whose reset counts from 1970",
		limits:  []limitSet{set("x-ratelimit-epoch", policy("requests", 60, requests, time.Minute, calendar, perKey))},
		assumed: "the limit is made up, of minutes of the clock",
		speak: func(a *reply) {
			l := a.tightest()
			a.fields("X-RateLimit-", l, secondOf(l.Whole))
			a.refused(object{"error": "too many requests"})
		},
	}
}

func xRatelimitSecondsRow() *tableRow {
	return &tableRow{
		name: "x-ratelimit-seconds", about: "X-RateLimit fields whose reset counts from now",
		limits:  []limitSet{set("x-ratelimit-seconds", policy("requests", 60, requests, time.Minute, anchored, perKey))},
		assumed: "the limit is made up, of minutes that begin with a request",
		speak: func(a *reply) {
			l := a.tightest()
			a.fields("X-RateLimit-", l, a.in(l.Whole))
			a.refused(object{"error": "too many requests"})
		},
	}
}
