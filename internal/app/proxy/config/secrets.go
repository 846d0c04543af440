package config

import (
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/app/yamlfile"
	"github.com/paceline-go/paceline/internal/secret"
)

// No error here shows a value that may be a secret, even one in the wrong place.

var aClientKey = form{"anyOf": []form{{"type": "string", "pattern": "^sha256:[0-9a-fA-F]{64}$"},
	yamlfile.Object(clientKeyFields)}}

// content is the text of a file.
func (r *reader) content(name string) ([]byte, error) {
	in, err := r.source.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && len(text) > most {
		return nil, fmt.Errorf("%s has more than %d bytes", name, most)
	}
	return text, err
}

// value reads a secret from its one source; from names the source for people.
func (r *reader) value(n *node, w *written) (value, from string) {
	ways := 0
	for _, way := range []*node{w.Env, w.File, w.Secret, w.Sha256} {
		if way != nil {
			ways++
		}
	}
	if ways != 1 {
		r.Refuse(n, "a key is written in %d ways: want one of env, file, secret", ways)
		return "", ""
	}
	switch {
	case w.Env != nil:
		return r.fromEnv(w.Env)
	case w.File != nil:
		value = strings.TrimRight(string(r.read(w.File, "file")), "\r\n")
		from = "file " + w.File.Value
	case w.Secret != nil:
		if w.Secret.Kind != yaml.ScalarNode || w.Secret.Tag == "!!null" {
			r.Refuse(w.Secret, "secret: is no text")
			return "", ""
		}
		value, from = w.Secret.Value, "written in the file"
		r.private(w.Secret, "secret: a key")
	}
	return value, from
}

// storeFromEnv reads the address of a store.
func (r *reader) storeFromEnv(n *node, what string) string {
	value, ok := r.source.Env(r.Text(n, what))
	switch {
	case ok && value != "":
	case secret.NamesVariable(n.Value):
		r.Refuse(n, "env: %s is not set, expected the address of a store in it", n.Value)
	default:
		r.Refuse(n, "env: no variable of the environment has this name, expected one with the address of a store in it")
	}
	return value
}

// fromEnv does not show a name that may be a key.
func (r *reader) fromEnv(n *node) (value, from string) {
	name := n.Value
	isName := n.Kind == yaml.ScalarNode && n.Tag != "!!null" && name != "" &&
		strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789abcdefghijklmnopqrstuvwxyz") == ""
	if !isName {
		r.Refuse(n, "env: is no name of a variable of the environment: want one such as OPENAI_KEY")
		return "", ""
	}
	ok := false
	if r.source.Env != nil {
		value, ok = r.source.Env(name)
	}
	if !ok {
		if secret.NamesVariable(name) {
			r.Refuse(n, "env: the variable %s is not set in the environment", name)
		} else {
			r.Refuse(n, "env: this variable is not set in the environment; if it is the key itself: want the name of a "+
				"variable that has it")
		}
		return "", ""
	}
	_, _ = r.sum.Write([]byte(name + "=" + value))
	return value, "env " + name
}

// private refuses a secret in a file that other users may read.
func (r *reader) private(n *node, what string) {
	if !r.source.Private {
		r.Refuse(n, "%s is written in a file that others may read: want env or file, or nobody but its owner allowed to "+
			"read this (chmod 600)", what)
	}
}

// keys reads the credentials of an upstream.
func (r *reader) keys(n *node, what string) (all []proxy.Key) {
	for item := range r.keyItems(n) {
		var w written
		if !r.isKey(item) {
			continue
		}
		yamlfile.Mapping(r, item, what, keyFields, &w)
		value, from := r.value(item, &w)
		k := proxy.Key{Name: w.Name, Secret: proxy.Secret(value), Limits: w.Limits}
		if from != "" {
			r.file.From[k.Secret] = from
		}
		all = append(all, k)
	}
	return all
}

// keyItems are the items of keys.
func (r *reader) keyItems(n *node) iter.Seq[*node] {
	if n.Kind != yaml.SequenceNode {
		r.Refuse(n, "keys: is no list: want items such as {name: first, env: OPENAI_KEY}, not the key itself")
		return func(func(*node) bool) {}
	}
	return yamlfile.Items(r, n, "keys")
}

// isKey reports whether an item is a mapping.
func (r *reader) isKey(n *node) bool {
	if n.Kind != yaml.MappingNode {
		r.Refuse(n, "keys: want a mapping such as {name: first, env: OPENAI_KEY} for each key, not the key itself")
	}
	return n.Kind == yaml.MappingNode
}

// clientKeys reads the keys of a client, and returns their hashes.
func (r *reader) clientKeys(n *node, _ string) (all []proxy.KeyHash) {
	for item := range r.keyItems(n) {
		hash, from, ok := r.clientKey(item)
		if !ok {
			continue
		}
		r.file.From[hash] = from
		all = append(all, hash)
	}
	return all
}

// metrics reads an address, or a mapping with one.
func (r *reader) metrics(n *node, what string) (m proxy.Metrics) {
	if n.Kind == yaml.MappingNode {
		yamlfile.Mapping(r, n, what, metricsFields, &m)
		return m
	}
	m.Listen = r.Text(n, what)
	return m
}

// token reads a token, and returns its hash.
func (r *reader) token(n *node, _ string) *proxy.KeyHash {
	hash, _, ok := r.clientKey(n)
	if !ok {
		return nil
	}
	return &hash
}

func (r *reader) clientKey(n *node) (hash proxy.KeyHash, from string, ok bool) {
	if n.Kind == yaml.ScalarNode {
		hash, err := proxy.ParseKeyHash(n.Value)
		if err != nil {
			r.Refuse(n, "keys: %v, or a mapping such as {env: ALICE_KEY}", err)
		}
		return hash, "by its hash", err == nil
	}
	if !r.isKey(n) {
		return hash, "", false
	}
	var w written
	yamlfile.Mapping(r, n, "keys", clientKeyFields, &w)
	if w.Sha256 != nil && w.Env == nil && w.File == nil && w.Secret == nil {
		b, err := hex.DecodeString(w.Sha256.Value)
		if err != nil || len(b) != len(hash) {
			r.Refuse(w.Sha256, "sha256: want %d hexadecimal digits, as printf %%s KEY | sha256sum prints them", 2*len(hash))
			return hash, "", false
		}
		return proxy.KeyHash(b), "by its hash", true
	}
	value, from := r.value(n, &w)
	if from != "" && (value == "" || strings.TrimSpace(value) != value ||
		strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f })) {
		r.Refuse(n, "keys: the key (%s) is empty, or has white space around it or a control character in it", from)
	}
	return proxy.HashKey(value), from, from != ""
}

func (r *reader) headerFields(n *node, what string) []proxy.Field {
	return r.templates(n, what, func(name, _ string) bool { return secret.PrivateField(name) })
}

func (r *reader) parameters(n *node, what string) []proxy.Field {
	return r.templates(n, what, secret.PrivateParameter)
}

var aTemplates = form{"type": "object", "additionalProperties": yamlfile.AText}

// templates reads names and their values. isPrivate reports by the name whether a
// value without {key} is a secret.
func (r *reader) templates(n *node, what string, isPrivate func(name, value string) bool) (all []proxy.Field) {
	if n.Kind != yaml.MappingNode {
		r.Refuse(n, "%s: is no mapping: want names and their values, such as Authorization: Bearer {key}", what)
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], yamlfile.Resolved(n.Content[i+1])
		name := r.Text(key, what)
		if slices.ContainsFunc(all, func(f proxy.Field) bool {
			return f.Name == name || what == "header" && strings.EqualFold(f.Name, name)
		}) {
			r.Refuse(key, "%s: %s is there already", what, yamlfile.Show(key))
		}
		word, meant := proxy.Field{Value: proxy.Secret(value.Value)}.Slip()
		switch {
		case value.Kind == yaml.MappingNode:
			r.Refuse(value, "%s: the value of %s is a mapping: want quotes around what begins with a brace, such as \"{key}\"",
				what, name)
			continue
		case value.Kind != yaml.ScalarNode || value.Tag == "!!null":
			r.Refuse(value, "%s: the value of %s is no text", what, name)
			continue
		case word != "":
			r.Refuse(value, "%s: the value of %s has %s in it, want %s", what, name, word, meant)
		case !strings.Contains(value.Value, "{key}") && value.Value != "{nonce}" && isPrivate(name, value.Value):
			r.private(value, fmt.Sprintf("%s: the value of %s without {key} in it", what, name))
		}
		all = append(all, proxy.Field{Name: name, Value: proxy.Secret(value.Value)})
	}
	return all
}
