package tokens

import (
	"net/url"
	"strings"
)

// The functions below read the bodies of providers with an API of their own: neither OpenAI's nor
// Anthropic's. Unknown members count as text where the model would read them.

// ends lists the endings of API paths. A longer ending stands before a shorter one that it ends in.
var ends = []struct {
	end string
	api API
}{
	{"/chat/completions", Chat}, {"/agents/completions", Chat}, {"/completions", Completions}, {"/responses", Responses},
	{"/api/embeddings", OllamaEmbed}, {"/embeddings", Embeddings}, {"/moderations", Moderations}, {"/messages", Messages},
	{":rawPredict", Messages}, {":streamRawPredict", Messages}, // Claude at Google
	{":generateContent", Gemini}, {":streamGenerateContent", Gemini}, {":embedContent", GeminiEmbed}, {":batchEmbedContents", GeminiEmbed}, {":predict", GeminiEmbed},
	{"/converse", Converse}, {"/converse-stream", Converse}, {"/invoke", Invoke}, {"/invoke-with-response-stream", Invoke},
	{"/v2/chat", CohereChat}, {"/v1/chat", CohereChat}, {"/v2/embed", CohereEmbed}, {"/v1/embed", CohereEmbed}, {"/rerank", CohereRerank},
	{"/api/generate", OllamaGenerate}, {"/api/chat", OllamaChat}, {"/api/embed", OllamaEmbed},
	{"/images/generations", Media}, {"/images/edits", Media}, {"/audio/speech", Media}, {"/audio/transcriptions", Media}, {"/audio/translations", Media},
}

// ModelOf returns the model that a URL names: /deployments/{model}/ (Azure), /models/{model}:method (Google)
// or /model/{model}/method (Bedrock). A slash that is escaped is part of the name. If the URL names none, the
// result is empty; then the body names the model.
func ModelOf(u *url.URL) string {
	if u.RawPath == "" {
		return modelIn(u.Path)
	}
	escaped := modelIn(strings.NewReplacer("%3A", ":", "%3a", ":").Replace(u.EscapedPath()))
	if model, err := url.PathUnescape(escaped); err == nil {
		return model
	}
	return escaped
}

func modelIn(path string) string {
	if _, rest, ok := strings.Cut(path, "/deployments/"); ok {
		model, _, more := strings.Cut(rest, "/")
		if more {
			return model
		}
	}
	if _, rest, ok := strings.Cut(path, "/models/"); ok {
		if model, _, method := strings.Cut(rest, ":"); method && !strings.Contains(model, "/") {
			return model
		}
	}
	if rest, ok := strings.CutPrefix(path, "/model/"); ok {
		if i := strings.LastIndexByte(rest, '/'); i > 0 && APIOf(rest[i:]) != NoAPI {
			return rest[:i]
		}
	}
	return ""
}

// inputOnly reports whether an API's answers have no output tokens.
func (a API) inputOnly() bool {
	switch a {
	case Embeddings, Moderations, GeminiEmbed, CohereEmbed, CohereRerank, OllamaEmbed:
		return true
	}
	return false
}

// either returns the first of the named members that an object has.
func either(v []byte, names ...string) []byte {
	for _, name := range names {
		if found := field(v, name); found != nil {
			return found
		}
	}
	return nil
}

// limits returns the places in the body of the most tokens of an answer, and of the number of
// answers.
func limits(api API, raw []byte) (most, choices [][]byte) {
	switch api {
	case Completions:
		return [][]byte{field(raw, "max_tokens")}, [][]byte{field(raw, "n"), field(raw, "best_of")}
	case Gemini:
		config := either(raw, "generationConfig", "generation_config")
		return [][]byte{either(config, "maxOutputTokens", "max_output_tokens")},
			[][]byte{either(config, "candidateCount", "candidate_count")}
	case Converse:
		return [][]byte{field(field(raw, "inferenceConfig"), "maxTokens")}, nil
	case Invoke: // each vendor has its own name
		return [][]byte{field(raw, "max_tokens"), field(raw, "max_tokens_to_sample"), field(raw, "max_gen_len"),
			either(field(raw, "inferenceConfig"), "maxTokens", "max_new_tokens"),
			field(field(raw, "textGenerationConfig"), "maxTokenCount")}, nil
	case CohereChat:
		return [][]byte{field(raw, "max_tokens")}, nil
	case OllamaGenerate, OllamaChat:
		// A negative number means no bound.
		if n := field(field(raw, "options"), "num_predict"); len(n) > 0 && n[0] != '-' {
			return [][]byte{n}, nil
		}
	}
	return nil, nil
}

func (w *walker) shown(v []byte) { w.visible(v, 0) }

func (w *walker) images(v []byte) { items(v, func(v []byte) { w.image(v, false) }) }

var cohereMembers = map[string]func(*walker, []byte){
	"messages": (*walker).messages, "chat_history": (*walker).messages, "message": (*walker).shown,
	"preamble": (*walker).shown, "texts": (*walker).shown, "inputs": (*walker).shown, "query": (*walker).shown,
	"documents": (*walker).shown, "images": (*walker).images, "tools": (*walker).functions, "connectors": (*walker).hidden,
}

var ollamaMembers = map[string]func(*walker, []byte){
	"messages": (*walker).messages, "prompt": (*walker).shown, "suffix": (*walker).shown, "system": (*walker).shown,
	"template": (*walker).shown, "input": (*walker).shown, "images": (*walker).images, "tools": (*walker).functions,
	"context": func(w *walker, v []byte) { items(v, func([]byte) { w.body.ids++ }) },
}

var geminiMembers = map[string]func(*walker, []byte){
	"contents": (*walker).contents, "content": (*walker).contents,
	"systemInstruction": (*walker).contents, "system_instruction": (*walker).contents,
	"requests": func(w *walker, v []byte) { // of embeddings
		items(v, func(v []byte) { w.contents(field(v, "content")) })
	},
	"instances": func(w *walker, v []byte) { items(v, w.shown) }, // of Vertex's embeddings
	"tools": func(w *walker, v []byte) {
		items(v, func(v []byte) {
			declared := either(v, "functionDeclarations", "function_declarations")
			if declared == nil {
				w.body.Hidden = true // the server runs the tool
			}
			w.functions(declared)
		})
	},
	"generationConfig": (*walker).geminiConfig, "generation_config": (*walker).geminiConfig,
	"cachedContent": (*walker).hidden, "cached_content": (*walker).hidden,
}

func (w *walker) geminiConfig(v []byte) {
	w.schema(either(v, "responseSchema", "response_schema", "responseJsonSchema"))
}

// contents reads a content, or a list of them: {"role", "parts"}.
func (w *walker) contents(v []byte) {
	items(v, w.contents)
	if first(v) != '{' {
		return
	}
	w.body.messages++
	if parts := field(v, "parts"); first(parts) == '{' {
		w.vendorPart(parts, 0)
	} else {
		items(parts, func(v []byte) { w.vendorPart(v, 0) })
	}
}

// vendorPart reads a part of a Gemini or Bedrock content: an object with one member. The member's
// name is the kind of the part.
func (w *walker) vendorPart(v []byte, depth int) {
	if first(v) != '{' || depth > maxDepth {
		w.visible(v, depth)
		return
	}
	b := w.body
	each(v, func(key, v []byte) {
		switch string(key) {
		case "text":
			w.text(v)
		case "inlineData", "inline_data":
			w.inline(str(either(v, "mimeType", "mime_type")), field(v, "data"))
		case "fileData", "file_data", "video", "guardContent":
			b.Hidden = true
		case "functionCall", "function_call", "toolUse":
			b.calls++
			w.text(field(v, "name"))
			w.verbatim(either(v, "args", "input"))
		case "functionResponse", "function_response", "toolResult":
			b.calls++
			w.text(field(v, "name"))
			w.verbatim(field(v, "response"))
			items(field(v, "content"), func(v []byte) { w.vendorPart(v, depth+1) })
		case "json":
			w.verbatim(v)
		case "image":
			w.image(field(field(v, "source"), "bytes"), false)
		case "document":
			w.text(field(v, "name"))
			source := field(v, "source")
			if text := field(source, "text"); text != nil {
				w.text(text)
			} else {
				w.document(field(source, "bytes"))
			}
		case "cachePoint", "cache_control", "thought", "thoughtSignature", "thought_signature", "type", "videoMetadata":
		default:
			w.visible(v, depth+1)
		}
	})
}

// inline reads a file inside a body for Gemini. Gemini counts 32 tokens for a second of audio, and
// 263 for a second of video. The fewest bytes per second are 16 kbit/s for audio and about 100
// kbit/s for video. (https://ai.google.dev/gemini-api/docs/tokens)
func (w *walker) inline(mime string, data []byte) {
	switch {
	case strings.HasPrefix(mime, "image/"):
		w.image(data, false)
	case strings.HasPrefix(mime, "audio/"):
		w.file(data, 2000/32)
	case strings.HasPrefix(mime, "video/"):
		w.file(data, 12500/263)
	default:
		w.document(data)
	}
}

var bedrockMembers = map[string]func(*walker, []byte){
	"messages": func(w *walker, v []byte) {
		items(v, func(v []byte) {
			w.body.messages++
			content := field(v, "content")
			if first(content) == '"' {
				w.text(content)
			}
			items(content, func(v []byte) {
				if kind := field(v, "type"); kind != nil { // Anthropic's form
					w.part(v, 0)
				} else {
					w.vendorPart(v, 0)
				}
			})
		})
	},
	"system": func(w *walker, v []byte) {
		if first(v) == '"' {
			w.text(v)
		}
		items(v, func(v []byte) { w.vendorPart(v, 0) })
	},
	"prompt": (*walker).shown, "inputText": (*walker).shown, "message": (*walker).shown,
	"chat_history": (*walker).shown, "texts": (*walker).shown, "tools": (*walker).claudeTools,
	"toolConfig": func(w *walker, v []byte) {
		items(field(v, "tools"), func(v []byte) {
			spec := field(v, "toolSpec")
			if spec == nil {
				return
			}
			w.body.schemas = true
			w.body.tools++
			w.text(field(spec, "name"))
			w.text(field(spec, "description"))
			w.verbatim(field(field(spec, "inputSchema"), "json"))
		})
	},
	"promptVariables": (*walker).hidden, "guardrailConfig": (*walker).hidden,
}
