package main

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/sharestore"
	"github.com/paceline-go/paceline/share"
)

// All requests with one key keep to one limit, in whatever way the key is given. It may come as
// --key-env, in a header or a query for all requests of a run, or from the clients of a proxy.
func TestOneKeyIsOneLimit(t *testing.T) {
	t.Parallel()
	name := "api/" + sharestore.New(sharestore.Config{Name: "api"}).Key(testKey)
	address := "sqlite:" + filepath.Join(t.TempDir(), "limits.db")
	ripeStore(t, address, name, perSecondKeeper(20))
	s := serveStrictly(t, 20, time.Second)
	flags := []string{"--limit", "20/s", "--share", address, "--share-name", "api"}
	for _, given := range [][]string{
		{"--key-env", "PL_TEST_KEY", "-H", "Authorization: Bearer {key}"}, {"-H", "Authorization: Bearer " + testKey}, {"-H", "Authorization: Token " + testKey},
		{"-H", "x-api-key: " + testKey}, {"--query", "api_key=" + testKey}, {"--key-env", "PL_TEST_KEY", "-H", "Authorization: Basic {key}"},
	} {
		c, errs := process(t, slices.Concat([]string{"run", urlFile(t, s.URL, 1), "--out", filepath.Join(t.TempDir(), "out.jsonl")}, flags, given)...)
		if err := c.Wait(); err != nil {
			t.Fatalf("%v: %v\n%s", given, err, errs)
		}
	}
	addr, _ := proxyLogging(t, filepath.Join(t.TempDir(), "log.txt"), append([]string{"--to", s.URL}, flags...)...)
	for _, header := range []string{"Authorization: Bearer " + testKey, "Authorization: Basic " + testKey, "X-Api-Key: " + testKey} {
		req, _ := http.NewRequest(http.MethodGet, addr+"/x", nil)
		field, value, _ := strings.Cut(header, ": ")
		req.Header.Set(field, value)
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v, %v", field, resp, err)
		}
		resp.Body.Close()
	}
	db, err := openStore(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if all, err := lookAtAll(t.Context(), db.(share.Lister), ""); err != nil || len(all) != 1 || all[0].Name != name {
		t.Errorf("%v: the limits of one key are %+v, want %q", err, all, name)
	}
}
