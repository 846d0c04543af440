package format

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// SaysNoModel reports whether an error says that the model does not exist, or that the key may not
// use it. It looks for a code that several providers share, and for words.
func SaysNoModel(status int, body []byte) bool {
	switch status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusUnprocessableEntity:
	default:
		return false
	}
	var v struct {
		Error json.RawMessage `json:"error"`
		problem
	}
	if json.Unmarshal(body, &v) != nil {
		return false
	}
	p := v.problem
	if len(v.Error) > 0 && json.Unmarshal(v.Error, &p) != nil {
		_ = json.Unmarshal(v.Error, &p.Message) // the error may be just a text
	}
	if slices.Contains(noModelCodes, p.Type) || slices.Contains(noModelCodes, strings.Trim(string(p.Code), `"`)) {
		return true
	}
	text := strings.ToLower(strings.Join(strings.Fields(p.Message), " "))
	if status == http.StatusNotFound && strings.Contains(text, "model") {
		return true
	}
	return slices.ContainsFunc(noModelWords, func(w string) bool { return strings.Contains(text, w) })
}

type problem struct {
	Code    json.RawMessage `json:"code"` // some providers send numbers
	Type    string          `json:"type"`
	Message string          `json:"message"`
}

var (
	noModelCodes = []string{"model_not_found", "invalid_model", "model_not_available", "model_not_supported",
		"DeploymentNotFound"}
	noModelWords = []string{"invalid model", "model not exist", "model not found", "not a valid model", "unknown model",
		"model does not exist"}
)
