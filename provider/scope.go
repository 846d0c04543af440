package provider

import "slices"

// Scope is the part of a quota whose requests share a limit. The zero Scope means unknown.
type Scope string

const (
	Key      Scope = "key"      // an API key, its account, organization or project
	IP       Scope = "ip"       // an address
	Model    Scope = "model"    // a key and a model
	Resource Scope = "resource" // a key and a named part of its quota, see Charge
	Route    Scope = "route"    // a key and an endpoint, method or instrument
	All      Scope = "all"      // all clients of the server
)

// ScopeInfo is a row of the table of scopes.
type ScopeInfo struct {
	Scope Scope
	// Key, Model, Resource and Route say what the requests of one scope have in common, beside their
	// server.
	Key, Model, Resource, Route bool
	// Whose, One and Per name the scope in texts: "the key", "a key", "per key".
	Whose, One, Per string
}

// scopes has a row for each Scope, the narrowest first.
var scopes = []ScopeInfo{
	{Scope: Route, Key: true, Route: true, Whose: "the endpoint", One: "a key and route", Per: "per endpoint"},
	{Scope: Model, Key: true, Model: true, Whose: "the model", One: "a key and model", Per: "per model"},
	{Scope: Resource, Key: true, Resource: true, Whose: "the resource", One: "a key and resource", Per: "per resource"},
	{Scope: Key, Key: true, Whose: "the key", One: "a key", Per: "per key"},
	{Scope: IP, Whose: "the address", One: "an address", Per: "per address"},
	{Scope: All, Whose: "everybody", One: "all", Per: "of everybody"},
}

// Scopes returns the table of scopes, the narrowest first.
func Scopes() []ScopeInfo { return slices.Clone(scopes) }

// Info returns the row of a scope. It is zero for a scope that is not in the table.
func (s Scope) Info() ScopeInfo {
	for _, row := range scopes {
		if row.Scope == s {
			return row
		}
	}
	return ScopeInfo{}
}
