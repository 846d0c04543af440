package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/paceline-go/paceline/internal/text"
)

// API is what a run needs of a description of an API, in the form of OpenAPI 3.0 or 3.1.
type API struct {
	root       map[string]any
	Operations []APIOperation // by path, and then by method
}

// APIOperation names an operation of an API.
type APIOperation struct {
	// Name is the operation's id, or its method and path if it has none.
	Name, Method, Path, Summary string

	item, op map[string]any
}

// apiMethods are the methods of operations, as a description spells them.
var apiMethods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}

// mostRefs bounds the references from one to the next, and the schemas within schemas.
const mostRefs = 64

// mostSchemas bounds the schemas of a body: two references in each make 2^64 of 64 levels.
const mostSchemas = 10_000

// beginsAPI matches the beginning of a description. In YAML, its members begin a line.
var beginsAPI = regexp.MustCompile(`(?m)^["']?(openapi|swagger)["']?[ \t]*:|^[ \t]*\{?[ \t]*"(openapi|swagger)"[ \t]*:`)

// IsAPI reports whether a text with this beginning is likely to describe an API. Lines of JSON may
// have a member of that name, too.
func IsAPI(head []byte) bool {
	return beginsAPI.Match(NoMarks(head)) && bytes.Contains(head, []byte("info"))
}

// ReadAPI reads a description of an API, in JSON or YAML.
func ReadAPI(b []byte) (*API, error) {
	b = bytes.TrimSpace(NoMarks(b))
	var root map[string]any
	var err error
	if bytes.HasPrefix(b, []byte("{")) {
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		err = d.Decode(&root) // YAML refuses the tabs that JSON may have
	} else {
		err = yaml.Unmarshal(b, &root)
	}
	if err != nil {
		return nil, fmt.Errorf("no JSON or YAML: %w", err)
	}
	version := fmt.Sprint(root["openapi"])
	switch {
	case root["swagger"] != nil:
		return nil, fmt.Errorf("version %v of Swagger, expected OpenAPI 3.0 or 3.1: npx swagger2openapi FILE converts it",
			root["swagger"])
	case !strings.HasPrefix(version, "3.0") && !strings.HasPrefix(version, "3.1"):
		return nil, fmt.Errorf("its member openapi is %q, expected 3.0 or 3.1", version)
	}
	a := &API{root: root}
	paths, err := a.object(root["paths"], "paths")
	if err != nil {
		return nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item, err := a.object(paths[path], "paths."+path)
		if err != nil {
			return nil, err
		}
		for _, method := range apiMethods {
			if item[method] == nil {
				continue
			}
			op, err := a.object(item[method], "paths."+path+"."+method)
			if err != nil {
				return nil, err
			}
			o := APIOperation{Method: strings.ToUpper(method), Path: path, item: item, op: op}
			o.Name, _ = op["operationId"].(string)
			if o.Name == "" {
				o.Name = o.Method + " " + path
			}
			o.Summary, _ = op["summary"].(string)
			a.Operations = append(a.Operations, o)
		}
	}
	if len(a.Operations) == 0 {
		return nil, errors.New("a description of an API without operations, expected some in its paths")
	}
	return a, nil
}

// object returns an object of the description, with its references resolved. It is nil if there is
// none. at is its place, for errors.
func (a *API) object(v any, at string) (map[string]any, error) {
	for range mostRefs {
		if v == nil {
			return nil, nil
		}
		o, is := v.(map[string]any)
		if !is {
			return nil, fmt.Errorf("%s: expected an object", at)
		}
		to, is := o["$ref"].(string)
		if !is {
			return o, nil
		}
		pointer, local := strings.CutPrefix(to, "#/")
		if !local {
			return nil, fmt.Errorf("%s: $ref %q leads out of the file, expected one that begins with #/: bundle the "+
				"description into one file", at, to)
		}
		v = any(a.root)
		for name := range strings.SplitSeq(pointer, "/") {
			if plain, err := url.PathUnescape(name); err == nil {
				name = plain
			}
			name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
			in, is := v.(map[string]any)
			if v = in[name]; !is || v == nil {
				return nil, fmt.Errorf("%s: $ref %q leads to nothing", at, to)
			}
		}
	}
	return nil, fmt.Errorf("%s: a $ref that leads back to itself, or through more than %d others", at, mostRefs)
}

// Operation returns the operation with this name, or with this method and path.
func (a *API) Operation(name string) (*APIOperation, error) {
	var names []string
	for i, o := range a.Operations {
		if o.Name == name || o.Method+" "+o.Path == name {
			return &a.Operations[i], nil
		}
		names = append(names, o.Name)
	}
	const most = 8
	near := text.Suggest(name, names)
	if len(near) == 0 {
		near = names[:min(len(names), most)]
	}
	return nil, fmt.Errorf("there is no operation %q among the %d of the description, expected such as %s", name,
		len(names),
		strings.Join(near, ", "))
}

// base returns the address of an operation's server, without a slash at its end.
func (a *API) base(o *APIOperation) (string, error) {
	for _, in := range []map[string]any{o.op, o.item, a.root} {
		servers, _ := in["servers"].([]any)
		if len(servers) == 0 {
			continue
		}
		server, err := a.object(servers[0], "servers")
		if err != nil {
			return "", err
		}
		address, _ := server["url"].(string)
		variables, err := a.object(server["variables"], "servers.variables")
		if err != nil {
			return "", err
		}
		for name, v := range variables {
			variable, err := a.object(v, "servers.variables."+name)
			if err != nil {
				return "", err
			}
			if value, is := variable["default"]; is {
				address = strings.ReplaceAll(address, "{"+name+"}", fmt.Sprint(value))
			}
		}
		return address, nil
	}
	return "", nil
}
