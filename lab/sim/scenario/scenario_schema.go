package scenario

import (
	"strings"

	"github.com/paceline-go/paceline/internal/app/yamlfile"
)

// Schema returns the format as a JSON schema (draft 2020-12), for editors. It is made from the
// tables that Read uses. Read may still refuse what the schema accepts: the schema checks only the
// form of rates and laws of latency, and does not compare fields with each other.
func Schema() []byte {
	return yamlfile.Schema("A scenario of paceline-lab sim", yamlfile.Object(scenarioFields))
}

// aLaw is the form of a law of latency.
var aLaw = yamlfile.Form{"type": "string", "pattern": "^[a-z]+:",
	"examples": []string{"constant:10ms", "uniform:20ms-40ms", "lognormal:10ms,p99=100ms"}}

// aStrategy is the form of a strategy: a name, or formulas. The one named null is not a text in YAML.
func aStrategy() yamlfile.Form {
	names := []any{nil}
	for _, name := range strategies() {
		names = append(names, name)
	}
	return yamlfile.Form{"anyOf": []form{{"enum": names}, yamlfile.Object(lawFields)}}
}

// oneOf is the form of a value that has a name.
func oneOf[T interface {
	~uint8
	String() string
}, P interface {
	*T
	UnmarshalText([]byte) error
}]() yamlfile.Form {
	var names []string
	for v := T(0); ; v++ {
		if err := P(new(T)).UnmarshalText([]byte(v.String())); err != nil {
			return yamlfile.Form{"enum": names}
		}
		names = append(names, v.String())
	}
}

// namesOf returns what String returns for the values of a type. The first one that begins with the
// text none ends the list.
func namesOf[T interface {
	~uint8
	String() string
}](none string) (names []string) {
	for v := T(0); !strings.HasPrefix(v.String(), none); v++ {
		names = append(names, v.String())
	}
	return names
}
