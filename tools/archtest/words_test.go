package archtest

import (
	"os"
	"testing"
	"testing/fstest"
)

func TestWords(t *testing.T) {
	found, err := Words(os.DirFS(root))
	if err != nil {
		t.Error(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}

func TestPlantedWords(t *testing.T) {
	for src, want := range map[string]string{
		"package p\ntype NewJunction struct{}":         "2: NewJunction has a word that is retired: say group",
		"package p\nfunc (p *pool) Told() {}":          "2: Told has a word",
		"package p\nconst (\nA = 1\nSightless = 2\n)":  "",
		"package p\nvar guardOf, Guarded int":          "",
		"package p\ntype junction struct{ Guard int }": "",
	} {
		found, err := Words(fstest.MapFS{"limit/a.go": {Data: []byte(src)}})
		if err != nil {
			t.Fatal(err)
		}
		expect(t, found, "limit/a.go", want)
	}
}
