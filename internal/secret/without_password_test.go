package secret

import (
	"strings"
	"testing"
)

// An address is shown without its password, however that is written, and the rest as far as it is
// surely none of it.
func TestSanitizeAddress(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"postgres://app:pw@db.internal/limits", "postgres://app:xxxxx@db.internal/limits"},
		{"postgres://app@db.internal/limits?sslmode=disable", "postgres://app@db.internal/limits?sslmode=disable"},
		{"postgres://app:pw@a:5432,b:5433/limits", "postgres://app:xxxxx@a:5432,b:5433/limits"},
		{"postgres:///limits?host=/run/postgresql", "postgres:///limits?host=/run/postgresql"},
		{"postgres://app:pw@%2Frun%2Fpostgresql/limits", "postgres://app:xxxxx@%2Frun%2Fpostgresql/limits"},
		{"redis://:pw@[::1]:1/2", "redis://:xxxxx@[::1]:1/2"},
		{"redis://:pw@h:1/2", "redis://:xxxxx@h:1/2"},
		{"Redis://u:pw@h", "redis://u:xxxxx@h"},
		{" redis://u:pw@h\n", "redis://u:xxxxx@h"},
		{"redis://:a%40b%2Fc@h", "redis://:xxxxx@h"},
		{"redis://h/0?password=pw&db=1&sentinel_password=pw", "redis://h/0?password=[hidden]&db=1&sentinel_password=[hidden]"},
		{"postgres://h/d?sslpassword=p%26w", "postgres://h/d?sslpassword=[hidden]"},
		{"https://api.example.com/v1?api_key=pw&model=m", "https://api.example.com/v1?api_key=[hidden]&model=m"},
		{"unix:///run/redis.sock?db=2", "unix:///run/redis.sock?db=2"},
		// A name without a password may be the password.
		{"redis://pw@h", "redis://xxxxx@h"},
		{"https://pw@h/v1", "https://xxxxx@h/v1"},
		{"https://pw:@h/v1", "https://xxxxx@h/v1"},
		{"http://pw@proxy:3128", "http://xxxxx@proxy:3128"},
		// These are no URLs.
		{"postgres://app:pw@pw@h/db", "postgres:…"},
		{"postgres://app:pw/pw@h/db", "postgres:…"},
		{"postgres://app:12/pw@h/db", "postgres:…"},
		{"redis://:12?pw@h", "redis:…"},
		{"redis://:12?p=w@h", "redis:…"},
		{"redis://:12#pw@h", "redis:…"},
		{"redis://:pw#pw@h", "redis:…"},
		{"redis://:50%off@h", "redis:…"},
		{"redis://:a b@h", "redis:…"},
		{"redis:/:pw@h", "redis:…"},
		{"redis:pw@h:1", "redis:…"},
		{"redis//:pw@h:1", "…"},
		{"rediss//:pw@h:1/0", "…"},
		{"nowhere", "nowhere"},
		{"127.0.0.1:9999", "127.0.0.1:9999"},
		{"localhost:80/v1", "localhost:80/v1"},
		{"api.example.com/v1", "api.example.com/v1"},
		{"name:pw", "…"},
		{"name:12", "…"},
		{"h.example:pw", "…"},
		{"pw:pw@h", "…"},
		{"host=h password=pw", "…"},
		{"postgres:host=h password=pw", "postgres:…"},
		{"redis://h#pw", "redis://h"},
		{"redis://h?pw", "redis://h?xxxxx"},
		{"", "…"},
	} {
		if got := SanitizeAddress(c.text); got != c.want {
			t.Errorf("%q is shown as %q, not as %q", c.text, got, c.want)
		}
	}
}

// An address without a scheme has an error of its own.
func TestNoScheme(t *testing.T) {
	for text, want := range map[string]error{
		"127.0.0.1:9999": ErrScheme, "localhost": ErrScheme, "api.example.com/v1": ErrScheme, "api": ErrScheme,
		"": ErrAddress, "name:pw": ErrAddress, "u:pw@h": ErrAddress, "http://a@b@c": ErrAddress, "http://127.0.0.1:9999": nil,
	} {
		if _, err := ParseAddress(text); err != want {
			t.Errorf("%q: %v, not %v", text, err, want)
		}
	}
}

// No part of a password of any signs is shown, neither by SanitizeAddress nor by ParseAddress.
func FuzzAddress(f *testing.F) {
	for _, password := range []string{"p@ss", "a/b", "a?b", "a#b", "50%off", "a%2", ":", "a:b@c/d", "12/x", "?x=y", "\x00", "ä b"} {
		f.Add(password, "redis://")
	}
	f.Fuzz(func(t *testing.T, password, before string) {
		if len(before) > 12 || strings.Contains(before, "SECRET") {
			return
		}
		text := before + "u:SECRET" + password + "SECRET@h:1/0"
		if shown := SanitizeAddress(text); strings.Contains(shown, "SECRET") {
			t.Errorf("%q is shown as %q", text, shown)
		}
	})
}
