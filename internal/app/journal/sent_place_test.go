package journal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/paceline-go/paceline/transport"
)

// Requests for nonexistent paths do not take up memory.
func TestNamesAreBounded(t *testing.T) {
	var names Names
	for i := range 3 * MostNames {
		p := Place{"api", transport.Partition{Route: "GET /" + string(rune('a'+i%26)) + string(rune(0x4e00+i%20000)) + string(rune(0x4e00+i/20000))}}
		if name := names.Of(p); name != p.String() {
			t.Fatal(name)
		}
	}
	n := 0
	names.all.Range(func(any, any) bool { n++; return true })
	if n > MostNames {
		t.Errorf("%d names are remembered", n)
	}
}

// A salt stays, and one that is damaged is an error.
func TestSalt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "salt")
	first, err := SaltOf(path)
	if err != nil {
		t.Fatal(err)
	}
	second, err := SaltOf(path)
	if err != nil || first.KeyName("secret") != second.KeyName("secret") || first.KeyName("secret") == first.KeyName("another") ||
		first.KeyName("") != "" {
		t.Errorf("%s and %s, %v", first.KeyName("secret"), second.KeyName("secret"), err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := SaltOf(path); err == nil {
		t.Error("an empty salt")
	}
}
