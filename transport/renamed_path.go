package transport

import (
	"net/url"
	"strings"
)

// inPaths are how paths name a model, as tokens.ModelOf reads them: what is before it, and what after.
var inPaths = [...][2]string{{"/deployments/", "/"}, {"/models/", ":"}, {"/model/", "/"}}

// renamePath gives the model in a path another name.
func renamePath(u *url.URL, model, name string) {
	for _, at := range inPaths {
		if before, rest, ok := strings.Cut(u.Path, at[0]+model+at[1]); ok {
			u.RawPath = renamedRaw(u.RawPath, at, model, name)
			u.Path = before + at[0] + name + at[1] + rest
			return
		}
	}
}

// renamedRaw is renamePath for an encoded path. An empty result means that Path says all.
func renamedRaw(raw string, at [2]string, model, name string) string {
	for _, end := range [...]string{at[1], url.QueryEscape(at[1])} {
		for _, m := range [...]string{model, url.PathEscape(model), strings.ReplaceAll(url.PathEscape(model), ":", "%3A")} {
			if before, rest, ok := strings.Cut(raw, at[0]+m+end); ok {
				return before + at[0] + url.PathEscape(name) + end + rest
			}
		}
	}
	return ""
}
