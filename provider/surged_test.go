package provider_test

import (
	"testing"

	"github.com/paceline-go/paceline/provider"
)

// A refusal says, by its code or in words, that the load rose too quickly. The same words in an answer
// that refuses nothing, or for another reason, say nothing.
func TestSurged(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   bool
	}{
		{429, `{"error":{"message":"Request rate increased too quickly. To ensure stability, …","code":"limit"}}`, true},
		{429, `{"error":{"message":"Too fast","code":"limit_burst_rate"}}`, true},
		{429, `{"error":{"type":"rate_limit_error","message":"This would exceed your acceleration limits."}}`, true},
		{429, `{"error":{"message":"You exceeded your maximum usage increase rate of tokens."}}`, true},
		{429, `{"error":{"message":"Rate limit reached for requests","code":"rate_limit_exceeded"}}`, false},
		{200, `{"error":{"message":"Request rate increased too quickly."}}`, false},
		{400, `{"error":{"message":"Request rate increased too quickly.","code":"invalid_request_error"}}`, false},
		{402, `{"error":{"message":"insufficient balance","code":"limit_burst_rate"}}`, false},
	} {
		d, _ := provider.Lookup("generic")
		if o := d.Read(now28, provider.Response{Status: c.status, Body: []byte(c.body)}); o.Surged != c.want {
			t.Errorf("%d %s: surged %v, want %v (%s)", c.status, c.body, o.Surged, c.want, o.Refusal)
		}
	}
}
