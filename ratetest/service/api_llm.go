package service

import (
	"cmp"
	"fmt"
	"iter"
	"net/http"
	"strings"

	"github.com/paceline-go/paceline/ratetest/internal/model"
)

// A vendor has endpoints of language models.
type vendor struct {
	form model.Form
	// listed reports that a stream is sent as a list of all its events. Nil: never.
	listed func(a *asked) bool
	// find returns the endpoint at a path, "" if there is none, and the model that the path names.
	find func(path string) (endpoint, name string)
	// read reads the body of a request. Nil: it is in OpenAI's form.
	read func(endpoint, name string, body []byte) (model.Ask, *model.Problem)
	// check returns the answer to a request without a key, or with another fault that its body does
	// not show. Nil: there is none.
	check func(a *asked) *answer
	// bad is the answer to a request with a mistake in its body.
	bad func(p *model.Problem) *answer
	// models are the models in the list of models, and list and one are its forms.
	models []string
	list   func(a *asked, models []object) any
	one    func(name string) object
	// missing is the answer for a model that is not in the list.
	missing func(name string) *answer
}

// The endpoints that are no APIs of package model.
const (
	listModels = "models"
	oneModel   = "model"
)

// openAIPaths are the endpoints of OpenAI's form, by the path below the base URL.
var openAIPaths = map[string]string{"chat/completions": "chat", "responses": "responses", "embeddings": "embeddings",
	"moderations": "moderations", "models": listModels}

// below finds endpoints of OpenAI's form below a base path.
func below(base string) func(string) (endpoint, name string) {
	return func(path string) (endpoint, name string) {
		rest, ok := strings.CutPrefix(path, base)
		if !ok {
			return "", ""
		}
		if name, ok := strings.CutPrefix(rest, "models/"); ok && name != "" {
			return oneModel, name
		}
		return openAIPaths[rest], ""
	}
}

// api returns the vendor's answers, for a row.
func (v *vendor) api() func(*asked) *answer {
	return func(a *asked) *answer {
		endpoint, name := v.find(a.path())
		lists := endpoint == listModels || endpoint == oneModel
		if endpoint == "" || lists != (a.Method == http.MethodGet) || !lists && a.Method != http.MethodPost {
			return nil
		}
		if refused := v.check(a); refused != nil {
			return refused
		}
		if lists {
			return v.catalog(a, endpoint, name)
		}
		read := v.read
		if read == nil {
			read = readOpenAI
		}
		ask, p := read(endpoint, name, a.Body)
		if p != nil {
			return v.bad(p)
		}
		return &answer{status: http.StatusOK, body: func(r *reply) any { return v.made(r, ask) }}
	}
}

func (v *vendor) catalog(a *asked, endpoint, name string) *answer {
	var models []object
	for _, known := range v.models {
		if endpoint == oneModel && known == name {
			return says(http.StatusOK, v.one(known))
		}
		models = append(models, v.one(known))
	}
	if endpoint == oneModel {
		return v.missing(name)
	}
	return says(http.StatusOK, v.list(a, models))
}

func readOpenAI(endpoint, _ string, body []byte) (model.Ask, *model.Problem) {
	return model.Read(model.FamilyOpenAI, endpoint, body)
}

const (
	usualOutput = 24 // tokens, of a request without a bound
	perEvent    = 8  // tokens of an event
)

// made makes the body of an answer. Its usage is the one that the limits have counted: the whole
// output that the request allows, unless the answer has to be a JSON value.
func (v *vendor) made(r *reply, ask model.Ask) any {
	c := &model.Answer{Ask: ask, N: r.n, ID: fmt.Sprintf("%024x", r.n), Created: r.now.Unix(), PerEvent: perEvent}
	c.Used = model.Usage{Input: r.Tokens, Output: cmp.Or(ask.Tokens(), ask.Output(), usualOutput*ask.Choices)}
	switch {
	case !ask.Generates():
		c.Used.Output = 0
	case ask.Stream && v.listed != nil && v.listed(r.asked):
		var all []any
		for e := range v.form.Events(c) {
			all = append(all, e.Data)
		}
		return all
	case ask.Stream:
		return v.form.Events(c)
	}
	return v.form.Whole(c)
}

// openAIModel is a model in a list of OpenAI's form.
func openAIModel(name, owner string) object {
	return object{"id": name, "object": "model", "created": 1_735_689_600, "owned_by": owner}
}

func openAIList(_ *asked, models []object) any { return object{"object": "list", "data": models} }

// openAIError is an error of OpenAI's form.
func openAIError(status int, text, code string) (int, any) {
	return status, object{"error": model.OpenAIError{Message: text, Type: model.InvalidRequest, Code: &code}}
}

func badOpenAI(p *model.Problem) *answer {
	return says(http.StatusBadRequest, object{"error": p.OpenAI()})
}

func groqVendor() *vendor {
	return &vendor{
		form: model.Groq{}, find: below("/openai/v1/"), bad: badOpenAI, list: openAIList,
		models: []string{"llama-3.3-70b-versatile", "llama-3.1-8b-instant", "openai/gpt-oss-120b", "openai/gpt-oss-20b",
			"qwen/qwen3-32b", "whisper-large-v3"},
		one: func(name string) object {
			o := openAIModel(name, "Groq")
			o["active"], o["context_window"], o["max_completion_tokens"], o["public_apps"] = true, 131_072, 32_768, nil
			return o
		},
		check: keyed(noKey(openAIError(http.StatusUnauthorized, "Invalid API Key", "invalid_api_key"))),
		missing: func(name string) *answer {
			return says(openAIError(http.StatusNotFound,
				fmt.Sprintf("The model `%.200s` does not exist or you do not have access to it.", name), "model_not_found"))
		},
	}
}

// deepseekVendor has chats and the list of models, with and without a version in the path.
func deepseekVendor() *vendor {
	return &vendor{
		form: model.OpenAI{}, bad: badOpenAI, list: openAIList, models: []string{"deepseek-v4-pro", "deepseek-flash"},
		find: func(path string) (endpoint, name string) {
			for _, base := range []string{"/v1/", "/"} {
				endpoint, name = below(base)(path)
				if endpoint == openAIPaths["chat/completions"] || endpoint == listModels || endpoint == oneModel {
					return endpoint, name
				}
			}
			return "", ""
		},
		one: func(name string) object { return object{"id": name, "object": "model", "owned_by": "deepseek"} },
		check: keyed(noKey(http.StatusUnauthorized, object{"error": object{
			"message": "Authentication Fails (auth header format should be Bearer sk-...)",
			"type":    "authentication_error", "param": nil, "code": model.InvalidRequest,
		}})),
		missing: func(string) *answer {
			return says(openAIError(http.StatusBadRequest, "Model Not Exist", model.InvalidRequest))
		},
	}
}

func mistralVendor() *vendor {
	return &vendor{
		form: model.Mistral{}, find: below("/v1/"), list: openAIList,
		models: []string{"mistral-small-latest", "mistral-medium-latest", "mistral-large-latest", "codestral-latest",
			"mistral-embed"},
		one: func(name string) object {
			o := openAIModel(name, "mistralai")
			o["name"], o["description"], o["max_context_length"], o["aliases"] = name, "A model of the test server", 131_072,
				[]string{}
			o["type"], o["deprecation"], o["default_model_temperature"] = "base", nil, 0.3
			chats := !strings.HasSuffix(name, "-embed")
			o["capabilities"] = object{"completion_chat": chats, "completion_fim": strings.HasPrefix(name, "codestral"),
				"function_calling": chats, "fine_tuning": false, "vision": false, "classification": false}
			return o
		},
		check: keyed(noKey(http.StatusUnauthorized, object{"detail": "Unauthorized"})),
		read:  readMistral,
		bad: func(p *model.Problem) *answer {
			if p.Missing {
				return says(http.StatusUnprocessableEntity, object{"object": "error", "type": model.InvalidRequest, "param": nil,
					"code": nil, "message": object{"detail": []object{{"type": "missing", "loc": []string{"body", p.Param},
						"msg": "Field required", "input": nil}}}})
			}
			return says(http.StatusBadRequest, object{"object": "error", "message": p.Text, "type": model.InvalidRequest,
				"param": nil, "code": "3051"})
		},
		missing: func(name string) *answer {
			return says(http.StatusNotFound, object{"object": "error", "message": fmt.Sprintf("Model %.200s not found", name),
				"type": "not_found_error", "param": nil, "code": nil})
		},
	}
}

// mistralDimensions is the size of a vector of mistral-embed.
const mistralDimensions = 1024

func readMistral(endpoint, _ string, body []byte) (model.Ask, *model.Problem) {
	ask, p := model.Read(model.FamilyOpenAI, endpoint, body)
	ask.Dimensions = mistralDimensions
	return ask, p
}

const azureKey = "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid " +
	"key for an active subscription and use a correct regional API endpoint for your resource."

// azureVendor has the endpoints of deployments, and those of the newer API, which names the
// deployment as its model.
func azureVendor() *vendor {
	newer := below("/openai/v1/")
	return &vendor{
		form: model.Azure{}, bad: badOpenAI, list: openAIList, models: []string{"gpt-4o", "gpt-4.1-mini", "o4-mini"},
		find: func(path string) (endpoint, name string) {
			if rest, ok := strings.CutPrefix(path, "/openai/deployments/"); ok {
				name, rest, _ = strings.Cut(rest, "/")
				return openAIPaths[rest], name
			}
			return newer(path)
		},
		one: func(name string) object {
			o := openAIModel(name, "azure")
			o["status"], o["lifecycle_status"] = "succeeded", "generally-available"
			o["capabilities"] = object{"inference": true, "chat_completion": true, "embeddings": false}
			return o
		},
		check: func(a *asked) *answer {
			switch old := strings.HasPrefix(a.path(), "/openai/deployments/"); {
			case !a.Keyed:
				return noKey(http.StatusUnauthorized, object{"error": object{"code": "401", "message": azureKey}})
			case old && a.URL.Query().Get("api-version") == "":
				return says(http.StatusNotFound, object{"error": object{"code": "404", "message": "Resource not found"}})
			}
			return nil
		},
		read: func(endpoint, name string, body []byte) (model.Ask, *model.Problem) {
			return model.ReadNamed(model.FamilyOpenAI, endpoint, name, body)
		},
		missing: func(string) *answer {
			return says(http.StatusNotFound, object{"error": object{"code": "DeploymentNotFound",
				"message": "The API deployment for this resource does not exist."}})
		},
	}
}

// geminiError is an error in the form of Google's APIs.
func geminiError(status int, word, text string) (int, any) {
	return status, object{"error": object{"code": status, "message": text, "status": word}}
}

// geminiVendor has the endpoints of models, and below /openai those of OpenAI's form.
func geminiVendor() *vendor {
	return &vendor{
		form: geminiForms{}, read: readGemini,
		listed: func(a *asked) bool {
			return strings.HasSuffix(a.path(), ":streamGenerateContent") && a.URL.Query().Get("alt") != "sse"
		},
		models: []string{"gemini-2.5-flash", "gemini-2.5-flash-lite", "gemini-2.5-pro", "gemini-embedding-001"},
		find: func(path string) (endpoint, name string) {
			for _, version := range []string{"/v1beta/", "/v1/", "/v1alpha/"} {
				if rest, ok := strings.CutPrefix(path, version); ok {
					return geminiEndpoint(rest)
				}
			}
			return "", ""
		},
		check: keyed(noKey(geminiError(http.StatusForbidden, "PERMISSION_DENIED", "Method doesn't allow unregistered callers "+
			"(callers without established identity). Please use API Key or other form of API consumer identity to call this "+
			"API."))),
		bad: func(p *model.Problem) *answer {
			return says(geminiError(http.StatusBadRequest, "INVALID_ARGUMENT", p.Text))
		},
		one: func(name string) object {
			methods := []string{"generateContent", "countTokens", "batchGenerateContent"}
			if strings.HasPrefix(name, "gemini-embedding") {
				methods = []string{"embedContent", "countTextTokens"}
			}
			return object{"name": "models/" + name, "version": "001", "displayName": name,
				"description": "A model of the test server", "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536,
				"supportedGenerationMethods": methods, "temperature": 1, "topP": 0.95, "topK": 64, "maxTemperature": 2}
		},
		list: geminiList,
		missing: func(name string) *answer {
			return says(geminiError(http.StatusNotFound, "NOT_FOUND", fmt.Sprintf("models/%.200s is not found for API version "+
				"v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their "+
				"supported methods.", name)))
		},
	}
}

// geminiEndpoint finds an endpoint below a version of the API.
func geminiEndpoint(rest string) (endpoint, name string) {
	if rest == "models" {
		return listModels, ""
	}
	if compatible, ok := strings.CutPrefix(rest, "openai/"); ok {
		return openAIPaths[compatible], ""
	}
	named, ok := strings.CutPrefix(rest, "models/")
	if !ok || named == "" {
		return "", ""
	}
	name, method, ok := strings.Cut(named, ":")
	switch {
	case !ok:
		return oneModel, name
	case method == "generateContent" || method == "streamGenerateContent" || method == "countTokens" ||
		method == "embedContent" || method == "batchEmbedContents":
		return method, name
	}
	return "", ""
}

func readGemini(endpoint, name string, body []byte) (model.Ask, *model.Problem) {
	if name == "" {
		return readOpenAI(endpoint, "", body)
	}
	return model.ReadGemini(endpoint, name, body)
}

// geminiForms writes each answer in the form of its endpoint.
type geminiForms struct{}

func (geminiForms) of(c *model.Answer) model.Form {
	for _, api := range openAIPaths {
		if api == c.API {
			return model.OpenAI{}
		}
	}
	return model.Gemini{}
}

// Whole implements model.Form.
func (g geminiForms) Whole(c *model.Answer) any { return g.of(c).Whole(c) }

// Events implements model.Form.
func (g geminiForms) Events(c *model.Answer) iter.Seq[model.Event] { return g.of(c).Events(c) }

func geminiList(a *asked, models []object) any {
	page, next := pageOf(models, a.URL.Query().Get("pageToken"), a.URL.Query().Get("pageSize"), 50)
	list := object{"models": page}
	if next != "" {
		list["nextPageToken"] = next
	}
	return list
}
