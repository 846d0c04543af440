package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
)

// mayAsk refuses a request for a model that its client may not use. A client with Models is refused
// each request with a body in which no model is found, since the server may find one there. A path that
// names a model is enough.
func (v *visit) mayAsk() *refusal {
	r, u := v.in, *v.in.URL
	u.Path, u.RawPath = strings.TrimPrefix(u.Path, v.upstream.Path), strings.TrimPrefix(u.RawPath, v.upstream.Path)
	all, path := namesIn(&u)
	if v.body != nil {
		body, whole := v.body.held()
		more, known := modelsIn(body, r.Header)
		if all = append(all, more...); !path && !(whole && known) {
			return v.client.mayNot("", v.body.most)
		}
	}
	if len(all) == 0 && r.Header.Get("Upgrade") != "" {
		return v.client.mayNot("", 0)
	}
	return v.client.mayUse(all)
}

// mayReach refuses a request to an upstream that its client may not use.
func (k *client) mayReach(u *upstream) *refusal {
	if k.Upstreams == nil || slices.Contains(k.Upstreams, u.Name) {
		return nil
	}
	return &refusal{status: http.StatusForbidden, kind: "upstream-not-allowed", title: "The client may not use this upstream",
		detail: fmt.Sprintf("the client %s may not use the upstream %s; expected one of %s", k.Name, u.Name,
			strings.Join(k.Upstreams, ", ")), pointless: true}
}

// mayUse refuses models that the client may not use.
func (k *client) mayUse(models []string) *refusal {
	for _, name := range models {
		if !slices.ContainsFunc(k.Models, func(p string) bool { return provider.Pattern(p).Match(name) }) {
			return k.mayNot(name, 0)
		}
	}
	return nil
}

// mayNot is the refusal of a model. Without one, none was found, in a body of which at most so many bytes
// are kept.
func (k *client) mayNot(model string, kept int64) *refusal {
	x := &refusal{status: http.StatusForbidden, kind: "model-not-allowed", title: "The client may not use this model",
		pointless: true}
	may := strings.Join(k.Models, ", ")
	switch {
	case model != "":
		x.detail = fmt.Sprintf("the client %s may not use the model %.100q; expected one of %s", k.Name, model, may)
	case kept > 0:
		x.detail = fmt.Sprintf("the client %s may use some models alone, and the model is not found in the body; expected "+
			"one of %s, in JSON or a form, without a coding, of at most %d bytes", k.Name, may, kept)
	default:
		x.detail = fmt.Sprintf("the client %s may use some models alone, and the request names none; expected one of %s",
			k.Name, may)
	}
	return x
}

// namesIn returns the models that a URL names, and whether its path names one.
func namesIn(u *url.URL) (all []string, path bool) {
	if name := tokens.ModelOf(u); name != "" {
		all, path = append(all, name), true
	}
	return append(all, u.Query()["model"]...), path
}

// modelsIn returns the models that a body names, in any place where a server may look for them: twice, in
// other letters, or in a list of spare ones. known is false if the body cannot be read.
func modelsIn(body []byte, h http.Header) (all []string, known bool) {
	if c := h.Get("Content-Encoding"); c != "" && c != "identity" {
		return nil, false
	}
	kind, params, _ := mime.ParseMediaType(h.Get("Content-Type"))
	if strings.HasPrefix(kind, "multipart/") {
		return modelsInForm(multipart.NewReader(bytes.NewReader(body), params["boundary"]))
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		var value json.RawMessage
		key, err := d.Token()
		if err != nil || d.Decode(&value) != nil {
			return nil, false
		}
		var name string
		var list []string
		switch k := key.(string); {
		case strings.EqualFold(k, "model") && json.Unmarshal(value, &name) == nil:
			all = append(all, name)
		case strings.EqualFold(k, "models") && json.Unmarshal(value, &list) == nil:
			all = append(all, list...)
		case strings.EqualFold(k, "model"), strings.EqualFold(k, "models"):
			return nil, false
		}
	}
	end, err := d.Token()
	return all, err == nil && end == json.Delim('}') && len(all) > 0
}

func modelsInForm(form *multipart.Reader) (all []string, known bool) {
	const most = 1 << 10 // bytes of a name
	for {
		part, err := form.NextPart()
		if err == io.EOF {
			return all, len(all) > 0
		}
		if err != nil {
			return nil, false
		}
		if strings.EqualFold(part.FormName(), "model") {
			name, err := io.ReadAll(io.LimitReader(part, most))
			if err != nil {
				return nil, false
			}
			all = append(all, string(name))
		}
	}
}

// mayBatch refuses a line of a batch as mayAsk refuses a request.
func (k *client) mayBatch(u *url.URL, body []byte) *refusal {
	if len(k.Models) == 0 {
		return nil
	}
	names, path := namesIn(u)
	all, known := modelsIn(body, nil)
	if x := k.mayUse(append(all, names...)); x != nil || known || path {
		return x
	}
	return k.mayNot("", 0)
}
