package yamlfile

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Changes returns the keys whose values differ in two files, such as upstreams.orders.limits. It has no
// values, since these may be secrets. An item of a list goes by its name, if it has one.
func Changes(was, now *yaml.Node) []string { return changes(nil, "", was, now) }

func changes(to []string, path string, was, now *yaml.Node) []string {
	if was == nil || now == nil {
		return append(to, path)
	}
	was, now = Resolved(was), Resolved(now)
	a, b := members(was), members(now)
	if was.Kind != now.Kind || len(a) == 0 || len(b) == 0 {
		if !same(was, now) {
			to = append(to, path)
		}
		return to
	}
	if path != "" {
		path += "."
	}
	earlier := map[string]*yaml.Node{}
	for _, m := range a {
		earlier[m.key] = m.value
	}
	for _, m := range b {
		to = changes(to, path+m.key, earlier[m.key], m.value)
		delete(earlier, m.key)
	}
	for _, m := range a {
		if earlier[m.key] != nil {
			to = append(to, path+m.key)
		}
	}
	return to
}

type member struct {
	key   string
	value *yaml.Node
}

// members are the values of a mapping, or the items of a list of mappings. Other nodes have none.
func members(n *yaml.Node) (all []member) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			all = append(all, member{n.Content[i].Value, n.Content[i+1]})
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			item = Resolved(item)
			if item.Kind != yaml.MappingNode {
				return nil
			}
			key := fmt.Sprint(i + 1)
			if name := Member(item, "name"); name != nil {
				key = name.Value
			}
			all = append(all, member{key, item})
		}
	}
	return all
}

// same reports whether two nodes have the same values.
func same(a, b *yaml.Node) bool {
	a, b = Resolved(a), Resolved(b)
	if a.Kind != b.Kind || a.Value != b.Value || len(a.Content) != len(b.Content) {
		return false
	}
	for i := range a.Content {
		if !same(a.Content[i], b.Content[i]) {
			return false
		}
	}
	return true
}
