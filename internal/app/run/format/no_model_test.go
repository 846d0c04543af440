package format

import "testing"

// Errors that mean that the model does not exist, and errors that do not. Capitals and white space make no
// difference in words.
func TestSaysNoModel(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   bool
	}{
		{404, `{"error":{"message":"The model gpt-9 does not exist","type":"invalid_request_error","code":"model_not_found"}}`, true},
		{403, `{"error":{"message":"Project p does not have access to it","code":"model_not_found"}}`, true},
		{404, `{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}`, true},
		{404, `{"error":"model 'x' not found"}`, true},
		{404, `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`, true},
		{400, `{"object":"error","message":"Invalid model: x","type":"invalid_model","param":null,"code":"1500"}`, true},
		{400, `{"error":{"message":"x is not a valid model ID","code":400}}`, true},
		{400, `{"error":{"message":"Invalid model: x","type":"invalid_model","code":400}}`, true},
		{400, `{"error":{"message":"Model Not Exist","type":"invalid_request_error","code":"invalid_request_error"}}`, true},
		{400, `{"error":{"message":"UNKNOWN\n  MODEL x"}}`, true}, {404, `{"message":"No MODEL of that name"}`, true},
		{404, `{"error":{"message":"Not Found"}}`, false}, {404, `<html>model</html>`, false}, {404, ``, false},
		{400, `{"error":{"message":"max_tokens is too large: this model supports at most 16384"}}`, false},
		{403, `{"error":{"message":"this model requires a subscription"}}`, false},
		{500, `{"error":{"code":"model_not_found"}}`, false}, {200, `{"error":{"code":"model_not_found"}}`, false},
	} {
		if got := SaysNoModel(c.status, []byte(c.body)); got != c.want {
			t.Errorf("%d %s: %v", c.status, c.body, got)
		}
	}
}
