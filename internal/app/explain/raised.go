package explain

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

var (
	// module is the class of an error with its module: openai.RateLimitError, com.stripe.exception.RateLimitException.
	module = regexp.MustCompile(`\b[a-z_][a-z0-9_]*(?:\.\w+)*\.[A-Z]\w*`)
	// installed is a package of Node in a trace: node_modules/@anthropic-ai/sdk/core.mjs.
	installed = regexp.MustCompile(`node_modules/((?:@[a-z0-9._-]+/)?[a-z0-9._-]+)/`)
	// raisedWith is an error with its status: RateLimitError: 429 Rate limit reached, ResourceExhausted: 429 Quota exceeded.
	raisedWith = regexp.MustCompile(`(?m)\b[A-Z]\w*(?:Error|Exception|Exhausted|Requests|Exceeded|Unavailable)\s*[:(]\s*([45][0-9][0-9])\b`)
	// calling is the form of errors of boto3.
	calling = regexp.MustCompile(`An error occurred \((\w+)\) when calling the \w+ operation[^:\n]*(?:: *([^\n]*))?`)
)

// Raised returns the names of errors and packages in a trace that tell which client library it is from. The last comes first, as it is the
// one that was raised in the end.
func Raised(text string) []string {
	all := module.FindAllString(text, -1)
	if calling.MatchString(text) {
		all = append(all, "botocore.exceptions.ClientError")
	}
	for _, m := range installed.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	slices.Reverse(all)
	return all
}

// raises tells whether a line begins with the name of an error, which looks like the name of a header field.
func raises(line string) bool {
	name, _, ok := strings.Cut(strings.TrimSpace(line), ":")
	return ok && !strings.Contains(name, "-") && (module.FindString(name) == name || slices.ContainsFunc([]string{"Error", "Exception"}, func(s string) bool { return strings.HasSuffix(name, s) }))
}

// statusRaised finds the status of an error after its name.
func statusRaised(s string) string {
	all := raisedWith.FindAllStringSubmatch(s, -1)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1][1]
}

// botocore reads an error of boto3, which has the code from the body, and no status.
func botocore(s string) (a Answer, ok bool) {
	all := calling.FindAllStringSubmatch(s, -1)
	if len(all) == 0 {
		return a, false
	}
	last := all[len(all)-1]
	body, err := json.Marshal(map[string]string{"__type": last[1], "message": last[2]})
	if err != nil {
		return a, false
	}
	a.Bare, a.Body, a.Header = true, body, http.Header{}
	return a.end(), true
}
