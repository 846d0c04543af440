package provider

import "testing"

// Every scope has a name in each kind of text, and what it has in common is part of a narrower one.
func TestScopes(t *testing.T) {
	for i, s := range Scopes() {
		if s.Whose == "" || s.One == "" || s.Per == "" {
			t.Errorf("%s: %+v, expected a name for each text", s.Scope, s)
		}
		if s.Scope.Info() != s {
			t.Errorf("%s: its row is %+v", s.Scope, s.Scope.Info())
		}
		if (s.Model || s.Resource || s.Route) && !s.Key || i > 0 && s.Key && !Scopes()[i-1].Key {
			t.Errorf("%s: %+v is narrower than what stands before it", s.Scope, s)
		}
	}
	if Scope("other").Info() != (ScopeInfo{}) {
		t.Error("an unknown scope has a row")
	}
}
