package yamlfile

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/paceline-go/paceline/internal/text"
)

// Collector is a Reader, or a struct that embeds one.
type Collector interface {
	Refuse(n *yaml.Node, format string, a ...any)
	reader() *Reader
}

func (r *Reader) reader() *Reader { return r }

// Field is a key of a mapping, and how its value is read.
type Field struct {
	Key   string
	Kind  Kind
	About string // for people, in the schema
}

// Key makes a Field, a row of a table.
func Key(key string, kind Kind, about string) Field { return Field{key, kind, about} }

// Kind is how a value is read.
type Kind struct {
	// As is the form of the value, in the schema.
	As Form
	// Read reads a value into a field.
	Read func(d Collector, n *yaml.Node, key string, to reflect.Value)
	// at is the Go field that the value goes into, with dots. If empty, the name of the field is the key's.
	at      string
	whole   bool   // the value goes into the mapping's own struct
	must    bool   // the key has to be there
	missing string // the end of the error if it is not; if empty, " in " and the mapping
}

// In is the kind, read into another field than the one that is named as the key: Backoff.Max.
func (k Kind) In(field string) Kind { k.at = field; return k }

// Must is the kind of a key that has to be there. The error of a mapping without it ends with missing, if that is not
// empty.
func (k Kind) Must(missing string) Kind { k.must, k.missing = true, missing; return k }

// Value is the kind of values that a method of D reads. D is a *Reader, or embeds one.
func Value[D Collector, V any](as Form, read func(d D, n *yaml.Node, key string) V) Kind {
	return Kind{As: as, Read: func(d Collector, n *yaml.Node, key string, to reflect.Value) {
		v := read(own[D](d), n, key)
		to.Set(reflect.ValueOf(&v).Elem().Convert(to.Type()))
	}}
}

// Part is the kind of values that a method of D reads into a T. With whole, that is the struct of the mapping itself.
func Part[D Collector, T any](as Form, whole bool, read func(d D, n *yaml.Node, key string, to *T)) Kind {
	return Kind{As: as, whole: whole, Read: func(d Collector, n *yaml.Node, key string, to reflect.Value) {
		read(own[D](d), n, key, to.Addr().Interface().(*T))
	}}
}

func own[D Collector](d Collector) D {
	if own, ok := d.(D); ok {
		return own
	}
	return Collector(d.reader()).(D)
}

// Struct is the kind of a mapping with these keys.
func Struct(fields []Field) Kind {
	return Kind{As: Object(fields), Read: func(d Collector, n *yaml.Node, key string, to reflect.Value) {
		Mapping(d, n, key, fields, to.Addr().Interface())
	}}
}

// Structs is the kind of a list of such mappings.
func Structs(fields []Field) Kind {
	return Kind{As: ListOf(Object(fields)), Read: func(d Collector, n *yaml.Node, key string, to reflect.Value) {
		for item := range Items(d, n, key) {
			v := reflect.New(to.Type().Elem())
			Mapping(d, item, key, fields, v.Interface())
			to.Set(reflect.Append(to, v.Elem()))
		}
	}}
}

// Mapping reads a mapping into the struct that to points to. Each key may stand once. what is its name in errors; "" is
// the file.
func Mapping(d Collector, n *yaml.Node, what string, fields []Field, to any) {
	n = Resolved(n)
	if n.Kind != yaml.MappingNode {
		d.Refuse(n, "%s: %s is no mapping: want %s", what, Show(n), List(Keys(fields)))
		return
	}
	in := ""
	if what != "" {
		in = " in " + what
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], Resolved(n.Content[i+1])
		if d.reader().enough(key) {
			return
		}
		if line, twice := seen[key.Value]; twice {
			d.Refuse(key, "%s is there already, in line %d", Show(key), line)
			continue
		}
		seen[key.Value] = key.Line
		known := false
		for _, f := range fields {
			if known = key.Kind == yaml.ScalarNode && f.Key == key.Value; known {
				f.Kind.Read(d, value, f.Key, f.of(to))
				break
			}
		}
		if !known {
			names := Keys(fields)
			want, meant := ": want "+List(names), text.DidYouMean(key.Value, names)
			if len(names) > mostNames && meant != "" {
				want = ""
			}
			d.Refuse(key, "%s is not known%s%s%s", Show(key), in, want, meant)
		}
	}
	for _, f := range fields {
		if f.Kind.must && Member(n, f.Key) == nil {
			d.Refuse(n, "%s is missing%s", f.Key, cmp.Or(f.Kind.missing, in))
		}
	}
}

// mostNames is how many names an error lists beside the name that is probably meant.
const mostNames = 30

// of is the field of a struct that the value of a key goes into.
func (f *Field) of(to any) reflect.Value {
	v := reflect.ValueOf(to).Elem()
	if f.Kind.whole {
		return v
	}
	if f.Kind.at == "" {
		v = v.FieldByNameFunc(func(name string) bool { return snake(name) == f.Key })
	} else {
		for name := range strings.SplitSeq(f.Kind.at, ".") {
			v = v.FieldByName(name)
		}
	}
	if !v.IsValid() {
		panic(fmt.Sprintf("yamlfile: %T has no field for %s", to, f.Key)) // the tables are ours
	}
	return v
}

// Keys are the keys of a table.
func Keys(fields []Field) (names []string) {
	for _, f := range fields {
		names = append(names, f.Key)
	}
	return names
}
