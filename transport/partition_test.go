package transport_test

import (
	"errors"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// However long the fields of a partition are, it takes little memory. Two that differ at the end remain two.
func TestLongFieldsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 5000)
	bounded := func(end string) (p transport.Partition) {
		v := reflect.ValueOf(&p).Elem()
		for _, f := range v.Fields() {
			if f.Type() == reflect.TypeFor[string]() {
				f.SetString(long + end)
			}
		}
		return transport.Bounded(p)
	}
	a, b := reflect.ValueOf(bounded("a")), reflect.ValueOf(bounded("b"))
	for i := range a.NumField() {
		if a.Field(i).Type() != reflect.TypeFor[string]() {
			continue // a scope
		}
		name, one, other := a.Type().Field(i).Name, a.Field(i).String(), b.Field(i).String()
		if len(one) > 300 || one == other {
			t.Errorf("%s has %d bytes, the same as of another partition: %v", name, len(one), one == other)
		}
	}
}

func TestPartitionOf(t *testing.T) {
	for _, tc := range []struct {
		method, url              string
		wantHost, model, wantURL string
	}{
		{"GET", "https://API.Example.com:443/", "api.example.com", "", "GET /"},
		{"POST", "http://a.test:8080/v1/users/123/posts", "a.test:8080", "", "POST /v1/users/*/posts"},
		{"GET", "http://a.test:80/repos/x/y", "a.test", "", "GET /repos/x/y"},
		{"GET", "http://a.test/o/550e8400-e29b-41d4-a716-446655440000", "a.test", "", "GET /o/*"},
		{"GET", "http://a.test/o/" + strings.Repeat("x", 41), "a.test", "", "GET /o/*"},
		{"GET", "http://a.test/model/x", "a.test", "", "GET /model/x"}, // as Bedrock's begin, and is none
		{"GET", "http://a.test/model/x/photos", "a.test", "", "GET /model/x/photos"},
		{"GET", "http://a.test/users/7", "a.test", "", "GET /users/*"},
		{"GET", "http://a.test/users/7/", "a.test", "", "GET /users/*/"},
		{"GET", "http://a.test/users/all", "a.test", "", "GET /users/all"},
		{"GET", "http://a.test/v1/users", "a.test", "", "GET /v1/users"},
		{"GET", "http://a.test/v1/users/v2", "a.test", "", "GET /v1/users/v2"},
		{"GET", "http://a.test/a/7/b", "a.test", "", "GET /a/*/b"},
		{"GET", "http://a.test/v1beta/x/", "a.test", "", "GET /v1beta/x/"},
		{"POST", "https://r.openai.azure.com/openai/deployments/mine/chat/completions", "r.openai.azure.com", "mine", "POST /openai/deployments/mine/chat/completions"},
		{"POST", "https://g.test/v1beta/models/gemini-2.0-flash:generateContent", "g.test", "gemini-2.0-flash", "POST /v1beta/models/*"},
		{"GET", "https://g.test/v1/models/tuned", "g.test", "", "GET /v1/models/tuned"}, // no method
		{"GET", "https://g.test/v1/models/", "g.test", "", "GET /v1/models/"},
		{"GET", "https://g.test/v1/models/a/versions/b:c", "g.test", "", "GET /v1/models/a/versions/b:c"}, // what is called is none of its methods
		{"POST", "https://r.openai.azure.com/openai/deployments/my%2Fdep/chat/completions", "r.openai.azure.com", "my/dep", "POST /openai/deployments/my/dep/chat/completions"},
		{"POST", "https://r.openai.azure.com/openai/deployments/my%20dep/chat/completions", "r.openai.azure.com", "my dep", "POST /openai/deployments/my dep/chat/completions"},
		{"POST", "https://r.test/v1/models/a%2fb%3AgenerateContent", "r.test", "a/b", "POST /v1/models/a/b:generateContent"},
		{"POST", "https://r.test/v1/models/a%3AgenerateContent", "r.test", "a", "POST /v1/models/a:generateContent"},
		{"GET", "https://r.test/deployments/mine", "r.test", "", "GET /deployments/mine"},
		{"GET", "https://r.test/deployments//x", "r.test", "", "GET /deployments//x"},
		{"GET", "", "", "", "GET "},
	} {
		p := transport.PartitionOf(request(t, tc.method, tc.url, ""))
		if p.Host != tc.wantHost || p.Model != tc.model || p.Route != tc.wantURL || p.Key != "" {
			t.Errorf("%s %s: %+v", tc.method, tc.url, p)
		}
	}
}

// The same credential is the same key, whatever else differs, and never shows.
func TestKeys(t *testing.T) {
	const u = "http://a.test/"
	same := [][2]*http.Request{
		{get(t, u, "Authorization", "Bearer a"), get(t, u+"x", "Authorization", "Bearer a")},
		{get(t, u, "X-Api-Key", "a"), get(t, u, "X-Api-Key", "a", "Other", "b")},
		{get(t, u+"?api_key=a&n=1"), get(t, u+"?n=2&api_key=a")},
		{get(t, u, "Authorization", "AWS4-HMAC-SHA256 Credential=AK/20260101/eu/s3/aws4_request, SignedHeaders=host, Signature=1"),
			get(t, u, "Authorization", "AWS4-HMAC-SHA256 Credential=AK/20260102/us/s3/aws4_request, SignedHeaders=host, Signature=2")},
		{get(t, u, "Authorization", "AWS AK:frJIUN8DYpKDtOLCwo="), get(t, u, "Authorization", "AWS AK:qgk2+6Sv9/oM7G3qLEjTH1a1l1g=")},
		{get(t, u, "Authorization", "SharedKey account:1="), get(t, u, "Authorization", "SharedKey account:2=")},
		// {"access_key":"a","nonce":"1"}, as Upbit has it, and 2
		{get(t, u, "Authorization", "Bearer eyJhbGciOiJIUzUxMiJ9.eyJhY2Nlc3Nfa2V5IjoiYSIsIm5vbmNlIjoiMSJ9.eDE"), get(t, u, "Authorization", "Bearer eyJhbGciOiJIUzUxMiJ9.eyJhY2Nlc3Nfa2V5IjoiYSIsIm5vbmNlIjoiMiJ9.eDI")},
		{get(t, u, "Authorization", `OAuth oauth_nonce="1",oauth_token="t",oauth_signature="x"`), get(t, u, "Authorization", `OAuth oauth_nonce="2",oauth_token="t",oauth_signature="y"`)},
	}
	form := func(kind string) *http.Request {
		r, err := http.NewRequest("POST", u, strings.NewReader("n=1&api_key=a"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", kind)
		return r
	}
	same = append(same, [2]*http.Request{get(t, u+"?api_key=a"), form("application/x-www-form-urlencoded")})
	for _, p := range same {
		a, b := transport.PartitionOf(p[0]).Key, transport.PartitionOf(p[1]).Key
		if a == "" || a != b {
			t.Errorf("%v %v and %v %v: %q and %q", p[0].URL, p[0].Header, p[1].URL, p[1].Header, a, b)
		}
	}
	differ := [][2]*http.Request{
		{get(t, u, "Authorization", "Bearer a"), get(t, u, "Authorization", "Bearer b")},
		{get(t, u, "Authorization", "Bearer a"), get(t, u)},
		{form("application/x-www-form-urlencoded"), form("text/plain")},
		{get(t, u, "Authorization", "Bearer a:1"), get(t, u, "Authorization", "Bearer a:2")},
		{get(t, u, "Authorization", "AWS AK:1"), get(t, u, "Authorization", "AWS BK:1")},
		{get(t, u+"?token=a"), get(t, u+"?token=b")},
		{get(t, "http://one:pw@a.test/"), get(t, "http://two:pw@a.test/")},
		{get(t, u, "Authorization", "AWS4-HMAC-SHA256 Credential=AK/1/eu, Signature=1"), get(t, u, "Authorization", "AWS4-HMAC-SHA256 Credential=BK/1/eu, Signature=1")},
	}
	for _, p := range differ {
		a, b := transport.PartitionOf(p[0]), transport.PartitionOf(p[1])
		if a.Key == b.Key {
			t.Errorf("%v %v and %v %v: both %q", p[0].URL, p[0].Header, p[1].URL, p[1].Header, a.Key)
		}
	}
	if p := transport.PartitionOf(get(t, u, "X-Api-Key", "hunter2")); strings.Contains(p.String()+p.LogValue().String(), "hunter2") {
		t.Error(p)
	}
}

// A limit is asked for once per partition of each scope, and holds for that.
func TestLimitPerScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := map[transport.Partition]int{}
		b := newBase(0, ok)
		tr := mustNew(t, transport.Config{
			Base: b,
			Limit: func(p transport.Partition) limit.Limiter {
				asked[p]++
				switch p.Scope {
				case provider.Key:
					return rolling(t, 2, time.Minute, limit.Requests)
				case provider.IP:
					return rolling(t, 3, time.Minute, limit.Requests)
				}
				return nil
			},
			Partition: func(r *http.Request) transport.Partition {
				return transport.Partition{Host: r.URL.Host, Key: r.Header.Get("K"), Route: r.URL.Path}
			},
		})
		var wg sync.WaitGroup
		for _, r := range []*http.Request{
			get(t, "http://a.test/1", "K", "one"), get(t, "http://a.test/2", "K", "one"), get(t, "http://a.test/1", "K", "one"), // the third waits for its key
			get(t, "http://a.test/1", "K", "two"), get(t, "http://a.test/1", "K", "two"), // the second for the address
			get(t, "http://b.test/1", "K", "one"),
		} {
			wg.Go(func() { do(t, tr, r) })
			synctest.Wait()
		}
		wg.Wait()
		for i, at := range b.at() {
			if late := at == time.Minute; late != (i >= 4) || at != 0 && !late {
				t.Errorf("sent at %v", b.at())
				break
			}
		}
		want := map[transport.Partition]int{}
		for _, p := range []transport.Partition{
			{Scope: provider.Route, Host: "a.test", Key: "one", Route: "/1"}, {Scope: provider.Route, Host: "a.test", Key: "one", Route: "/2"},
			{Scope: provider.Route, Host: "a.test", Key: "two", Route: "/1"}, {Scope: provider.Route, Host: "b.test", Key: "one", Route: "/1"},
			{Scope: provider.Key, Host: "a.test", Key: "one"}, {Scope: provider.Key, Host: "a.test", Key: "two"}, {Scope: provider.Key, Host: "b.test", Key: "one"},
			{Scope: provider.IP, Host: "a.test"}, {Scope: provider.IP, Host: "b.test"},
			// Their models are not known.
			{Scope: provider.Model, Host: "a.test", Key: "one"}, {Scope: provider.Model, Host: "a.test", Key: "two"}, {Scope: provider.Model, Host: "b.test", Key: "one"},
		} {
			want[p] = 1
		}
		for p := range want {
			if asked[p] != 1 {
				t.Errorf("%+v: asked %d times", p, asked[p])
			}
		}
		if len(asked) != len(want) {
			t.Errorf("asked for %d, want %d: %v", len(asked), len(want), asked)
		}
	})
}

// Memory is bounded: unused partitions are forgotten, but none with a request under way.
func TestPartitionsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := map[string]int{}
		stop := make(chan struct{})
		tr := mustNew(t, transport.Config{
			MaxPartitions: 10, Idle: time.Hour,
			Limit: func(p transport.Partition) limit.Limiter {
				if p.Scope == provider.Key {
					made[p.Key]++
					return rolling(t, 1, time.Minute, limit.Requests)
				}
				return nil
			},
			Partition: func(r *http.Request) transport.Partition {
				return transport.Partition{Host: r.URL.Host, Key: r.Header.Get("K")}
			},
			Base: roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.URL.Path == "/slow" {
					<-stop
				}
				return reply(200, ""), nil
			}),
		})
		var wg sync.WaitGroup
		wg.Go(func() { do(t, tr, get(t, "http://a.test/slow", "K", "slow")) })
		synctest.Wait()
		for i := range 1000 {
			do(t, tr, get(t, "http://a.test/", "K", strconv.Itoa(i)))
		}
		if n := tr.Stats().Partitions; n != 10 {
			t.Errorf("%d are remembered, want 10", n)
		}
		start := time.Now()
		wg.Go(func() { do(t, tr, get(t, "http://a.test/", "K", "slow")) }) // waits for the one under way
		synctest.Wait()
		close(stop)
		wg.Wait()
		if made["slow"] != 1 || time.Since(start) != time.Minute {
			t.Errorf("the limit of a request under way was made %d times; the next went after %v", made["slow"], time.Since(start))
		}
		time.Sleep(time.Hour)
		do(t, tr, get(t, "http://a.test/", "K", "new"))
		do(t, tr, get(t, "http://a.test/", "K", "newer"))
		if n := tr.Stats().Partitions; n > 4 {
			t.Errorf("after an hour %d are remembered", n)
		}
	})
}

// A key is remembered for as long as one of its routes is.
func TestKeyOutlivesARoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, ok)
		made := 0
		tr := mustNew(t, transport.Config{Base: b, MaxPartitions: 2, Limit: func(p transport.Partition) limit.Limiter {
			if p.Scope != provider.Key {
				return nil
			}
			made++
			return rolling(t, 100, time.Minute, limit.Requests)
		}})
		for _, path := range []string{"/a", "/b", "/c", "/d", "/e"} {
			do(t, tr, get(t, "http://a.test"+path))
		}
		if made != 1 {
			t.Errorf("its limit was made %d times", made)
		}
	})
}

func TestOneLimiterForTwo(t *testing.T) {
	one := limit.MustRolling(1, time.Second)
	tr := mustNew(t, transport.Config{Base: newBase(0, ok), Limit: func(transport.Partition) limit.Limiter { return one }})
	defer func() {
		if p, _ := recover().(string); !strings.Contains(p, "one limiter for") {
			t.Errorf("got %q", p)
		}
	}()
	tr.RoundTrip(get(t, "http://a.test/"))
}

// So it is found between partitions too, but may be handed out again when its partition is forgotten.
func TestOneLimiterForTwoPartitions(t *testing.T) {
	one := limit.MustRolling(10, time.Second)
	tr := mustNew(t, transport.Config{Base: newBase(0, ok), MaxPartitions: 1, Limit: func(p transport.Partition) limit.Limiter {
		if p.Scope == provider.IP {
			return one
		}
		return nil
	}})
	for range 2 {
		do(t, tr, get(t, "http://a.test/"))
		do(t, tr, get(t, "http://b.test/")) // a.test is forgotten
	}
	one = limit.MustRolling(10, time.Second) // the first Transport keeps the other
	tr = mustNew(t, transport.Config{Base: newBase(0, ok), Limit: func(p transport.Partition) limit.Limiter {
		if p.Scope == provider.IP {
			return one
		}
		return nil
	}})
	do(t, tr, get(t, "http://a.test/"))
	defer func() {
		if p, _ := recover().(string); !strings.Contains(p, "one limiter for a.test and for b.test") {
			t.Errorf("got %q", p)
		}
	}()
	tr.RoundTrip(get(t, "http://b.test/"))
}

// A piece of a path with a figure is an object's, and one that is long; a version is not.
func TestObjectsInPaths(t *testing.T) {
	for segment, object := range map[string]bool{
		"v1": false, "v1beta": false, "v2024": false, "users": false, "vip": false, "v1234567": false, strings.Repeat("x", 30): false,
		"12": true, "x1": true, "vip-12": true, "b2024": true, "v12345678": true, "user-1": true, strings.Repeat("x", 300): true,
	} {
		r := get(t, "http://a.test/"+segment+"/list")
		want := "GET /" + segment + "/list"
		if object {
			want = "GET /*/list"
		}
		if got := transport.PartitionOf(r).Route; got != want {
			t.Errorf("%s: %q", segment, got)
		}
	}
}

// A Scope from Config.Partition does not distinguish requests: it is for a pause in Stats.
func TestScopeIsNoPartition(t *testing.T) {
	tr := mustNew(t, transport.Config{
		Base: roundTripper(func(*http.Request) (*http.Response, error) { return reply(200, ""), nil }),
		Partition: func(r *http.Request) transport.Partition {
			return transport.Partition{Host: r.URL.Host, Scope: provider.Scope(strings.TrimPrefix(r.URL.Path, "/"))}
		},
	})
	for _, scope := range []provider.Scope{"", provider.Key, provider.All} {
		do(t, tr, get(t, "http://a.test/"+string(scope)))
	}
	if all := tr.Partitions(); len(all) != 1 || all[0].Partition != (transport.Partition{Host: "a.test"}) {
		t.Errorf("%+v", all)
	}
}

// A request counts in every scope of the table but one, with what the table says that its requests have in
// common.
func TestScopesOfRequests(t *testing.T) {
	got := map[provider.Scope]transport.Partition{}
	tr := mustNew(t, transport.Config{
		Base: newBase(0, ok),
		Limit: func(p transport.Partition) limit.Limiter {
			got[p.Scope] = p
			return nil
		},
		Partition: func(*http.Request) transport.Partition {
			return transport.Partition{Host: "h", Key: "k", Model: "m", Resource: "s", Route: "r"}
		},
	})
	do(t, tr, get(t, "http://h/"))
	for _, s := range provider.Scopes() {
		want := transport.Partition{Scope: s.Scope, Host: "h"}
		if s.Key {
			want.Key = "k"
		}
		if s.Model {
			want.Model = "m"
		}
		if s.Resource {
			want.Resource = "s"
		}
		if s.Route {
			want.Route = "r"
		}
		if s.Scope != provider.All && got[s.Scope] != want {
			t.Errorf("%s: %+v, expected %+v", s.Scope, got[s.Scope], want)
		}
	}
}

// The credential in a body is that of the whole body, of which 64 KiB are read at most. A body that cannot be had has
// none.
func TestCredentialInABody(t *testing.T) {
	const most = 64 << 10
	filled := func(n int) string { return "api_key=a&n=" + strings.Repeat("x", n-len("api_key=a&n=")) }
	for _, c := range []struct {
		name   string
		body   string
		change func(r *http.Request)
		want   string
	}{
		{"as much as is read", filled(most), nil, "a"},
		{"a byte more", filled(most + 1), nil, ""},
		{"a byte", "a", nil, ""},
		{"a length that is not known", filled(100), func(r *http.Request) { r.ContentLength = -1 }, ""},
		{"no GetBody", filled(100), func(r *http.Request) { r.GetBody = nil }, ""},
		{"a GetBody that fails", filled(100), func(r *http.Request) {
			r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(filled(100))), errors.New("gone") }
		}, ""},
		{"a GetBody that panics", filled(100), func(r *http.Request) { r.GetBody = func() (io.ReadCloser, error) { panic("gone") } }, ""},
		{"a body that breaks off", filled(100), func(r *http.Request) {
			r.GetBody = func() (io.ReadCloser, error) {
				return io.NopCloser(io.MultiReader(strings.NewReader(filled(100)), iotest.ErrReader(errors.New("gone")))), nil
			}
		}, ""},
	} {
		r, err := http.NewRequest("POST", "http://a.test/", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if c.change != nil {
			c.change(r)
		}
		if got := transport.CredentialOf(r); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
