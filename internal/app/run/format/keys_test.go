package format

import (
	"strings"
	"testing"
)

func TestKeysFromEnv(t *testing.T) {
	env := map[string]string{"A": "secret-a", "B": "secret-b", "C": "secret-a", "EMPTY": "", "LINE": "secret\n"}
	lookup := func(n string) (string, bool) { v, ok := env[n]; return v, ok }
	keys, err := KeysFromEnv("key-env", []string{"A", " B "}, lookup)
	if err != nil || len(keys) != 2 || keys[1] != (Key{Name: "B", Secret: "secret-b"}) {
		t.Errorf("%v %v", keys, err)
	}
	for _, c := range []struct{ names, want string }{
		{"A,NONE", "the environment variable NONE is not set; expected: export NONE=…"},
		{"A,sk-abc", "no environment variable has this name, which is not shown: it looks like a key; expected the name of a variable, such as: export NAME=…; --key-env NAME"},
		{"EMPTY", "the environment variable EMPTY is empty"},
		{"LINE", "the value of LINE has white space around it or a control character in it (a line break?)"},
		{"A,B,C", "A and C have the same value: as two keys they would be allowed twice the limit"},
		{"A,A", "A is given twice"},
		{"A,", "an empty name, expected names of environment variables separated by commas"},
	} {
		_, err := KeysFromEnv("key-env", strings.Split(c.names, ","), lookup)
		if err == nil || err.Error() != "--key-env: "+c.want || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %s", c.names, err, c.want)
		}
	}
}
