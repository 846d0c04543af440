package tokens

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // for the sizes of inline images
	_ "image/jpeg"
	_ "image/png"
	"io"
	"strings"
	"unicode/utf8"
)

// ErrMalformed reports a body that its API neither accepts nor answers: it is not JSON, or a number
// in it is impossible.
var ErrMalformed = errors.New("malformed body")

// API is the shape of a request and of its answer.
type API uint8

const (
	NoAPI      API = iota // counts no tokens, or counts them in an unknown way
	Chat                  // OpenAI: POST .../chat/completions, and compatible servers
	Responses             // OpenAI: POST .../responses
	Embeddings            // OpenAI: POST .../embeddings
	Messages              // Anthropic: POST .../messages, and Vertex's .../{model}:rawPredict

	Completions    // OpenAI: POST .../completions; Mistral: .../fim/completions
	Moderations    // POST .../moderations
	Media          // OpenAI: POST .../images/…, .../audio/…, if the body is JSON
	Gemini         // POST .../{model}:generateContent and :streamGenerateContent, at Vertex too
	GeminiEmbed    // POST .../{model}:embedContent, :batchEmbedContents, :predict
	Converse       // Bedrock: POST .../{model}/converse and /converse-stream
	Invoke         // Bedrock: POST .../{model}/invoke and /invoke-with-response-stream
	CohereChat     // POST .../v2/chat
	CohereEmbed    // POST .../v2/embed
	CohereRerank   // POST .../v2/rerank
	OllamaGenerate // POST .../api/generate
	OllamaChat     // POST .../api/chat
	OllamaEmbed    // POST .../api/embed
	apis
)

var apiNames = [apis]string{"no API", "chat", "responses", "embeddings", "messages", "completions", "moderations",
	"media", "Gemini", "Gemini's embeddings", "Converse", "InvokeModel",
	"Cohere's chat", "Cohere's embeddings", "Cohere's rerank", "Ollama's generate", "Ollama's chat", "Ollama's embeddings"}

func (a API) String() string {
	if a < apis {
		return apiNames[a]
	}
	return fmt.Sprintf("API %d", uint8(a))
}

// APIOf returns the API of a POST to this URL path. Only the end of the path counts, so a gateway's
// prefix does not matter.
func APIOf(path string) API {
	path = strings.TrimSuffix(path, "/")
	for _, e := range ends {
		// OpenAI's Assistants have the same ending.
		if strings.HasSuffix(path, e.end) && !(e.api == Messages && strings.Contains(path, "/threads/")) {
			return e.api
		}
	}
	return NoAPI
}

// maxTokens bounds every count, here and in answers. A sum of half a million such counts fits an
// int64.
const maxTokens = 1 << 44

// Body has the facts about tokens in the body of a request, before any token is counted.
type Body struct {
	API API
	// Model is the model in the body. It is empty if the URL names the model (Azure OpenAI); the
	// caller may then fill it in.
	Model string
	// Stream reports that the answer is an event stream. StreamUsage reports that the stream will
	// end with its usage. A chat stream does so only with stream_options.include_usage. Without it,
	// nothing can be settled or learned.
	Stream, StreamUsage bool
	// Choices is the number of answers that the request asks for, at least 1. The output of each
	// counts.
	Choices int64
	// MaxOutput is the most tokens of each choice (max_tokens, max_completion_tokens,
	// max_output_tokens). Bounded reports that the body states it.
	MaxOutput int64
	Bounded   bool
	// TextBytes is the length of the text for the model, in bytes of UTF-8, without the escapes of
	// JSON.
	TextBytes int64
	// Attachments counts images, sounds and files.
	Attachments int
	// Hidden reports that the model reads more than the body has. Examples are an earlier response,
	// a stored file or prompt, and the results of a tool on the server.
	Hidden bool
	// Guessed reports a file, such as a PDF, whose pages cannot be counted. Its tokens are guessed
	// by its bytes.
	Guessed bool

	raw      []byte
	spare    int64 // bytes of raw that are surely no text: media, and the overhead of escapes
	shape    shape
	messages int64
	names    int64
	calls    int64 // tool calls and results
	tools    int64
	schemas  bool  // there are tools or a schema: their rendering is not published
	toolMark int64 // tokens of tools beyond their text, except the perTool of the encoding
	ids      int64 // the number of token numbers in an embeddings request
	media    []medium
}

// Bytes is the length of the body without the parts that are surely no text. No text has more
// tokens than Bytes.
func (b *Body) Bytes() int64 { return int64(len(b.raw)) - b.spare }

// medium is an attachment. Its cost depends on the model, which the caller may still fill in.
type medium struct {
	width, height int
	low           bool
	tokens        int64 // of an attachment that is not an image
	pages         int64 // of a PDF
}

// maxMedia bounds the memory for attachments. Each further attachment costs as much as the last
// one.
const maxMedia = 1024

// bounds are the members that bound the output. If a body has both, the larger one counts.
var bounds = [apis][2]string{
	Chat:       {"max_tokens", "max_completion_tokens"},
	Responses:  {"max_output_tokens", "max_output_tokens"},
	Embeddings: {},
	Messages:   {"max_tokens", "max_tokens"},
}

// Parse reads the body of a request. It keeps a reference to raw: raw must not change until the
// Body is estimated. Unknown fields count as text where the model would read them, and are ignored
// elsewhere. So a new field or a new kind of content needs no release.
//
// The error wraps ErrMalformed and states the place in the body. Parse accepts everything that only
// the server can judge, such as a body without a model or messages.
func Parse(api API, raw []byte) (Body, error) {
	b := Body{API: api, Choices: 1, raw: raw}
	if api == NoAPI || api >= apis {
		return b, fmt.Errorf("tokens: %v: cannot read the request", api)
	}
	if !json.Valid(raw) {
		var v json.RawMessage
		err := json.Unmarshal(raw, &v)
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return b, fmt.Errorf("tokens: %v request: %w: %v at byte %d", api, ErrMalformed, err, syntax.Offset)
		}
		return b, fmt.Errorf("tokens: %v request: %w: %v", api, ErrMalformed, err)
	}
	if first(raw) != '{' {
		return b, fmt.Errorf("tokens: %v request: %w: not a JSON object", api, ErrMalformed)
	}
	b.StreamUsage = api != Chat && api != Completions
	var err error
	number := func(key, v []byte) (n int64, ok bool) {
		n, ok, bad := whole(v)
		if bad != nil && err == nil {
			err = fmt.Errorf("tokens: %v request: %w: %s: %v", api, ErrMalformed, key, bad)
		}
		return n, ok
	}
	each(raw, func(key, v []byte) {
		switch string(key) {
		case "model":
			b.Model = str(v)
		case "stream":
			b.Stream = string(v) == "true"
		case "stream_options":
			if api == Chat || api == Completions {
				b.StreamUsage = string(field(v, "include_usage")) == "true"
			}
		case "n":
			if api == Chat {
				n, _ := number(key, v)
				b.Choices = max(n, 1)
			}
		case bounds[api][0], bounds[api][1]:
			if n, ok := number(key, v); ok {
				b.MaxOutput, b.Bounded = max(b.MaxOutput, n), true
			}
		}
	})
	most, choices := limits(api, raw)
	for _, v := range most {
		if n, ok := number([]byte("the most tokens"), v); ok {
			b.MaxOutput, b.Bounded = max(b.MaxOutput, n), true
		}
	}
	for _, v := range choices {
		n, _ := number([]byte("the number of answers"), v)
		b.Choices = max(b.Choices, n)
	}
	if err != nil {
		return b, err
	}
	w := walker{body: &b}
	w.request()
	return b, nil
}

// walker visits the parts of a body that the model reads. json.Valid has accepted the body, so
// nothing here can fail. A value of an unexpected type is skipped or counts as text.
type walker struct {
	body   *Body
	count  Vocabulary // counts texts; nil: their shape is taken
	tokens int64      // the sum of the counts
	buf    []byte
	line   []byte
}

func (w *walker) request() {
	read := members[min(w.body.API, apis)]
	each(w.body.raw, func(key, v []byte) {
		if f := read[string(key)]; f != nil {
			f(w, v)
		}
	})
}

// The members of a body that the model reads, by the API. Others are ignored.
var members = [apis + 1]map[string]func(*walker, []byte){
	Chat: {
		"messages": (*walker).messages, "tools": (*walker).functions, "functions": (*walker).functions,
		"response_format":    func(w *walker, v []byte) { w.schema(field(v, "json_schema")) },
		"web_search_options": (*walker).hidden,
	},
	Responses: {
		"input": func(w *walker, v []byte) {
			if first(v) == '"' {
				w.body.messages++
			}
			w.content(v)
		},
		"instructions": func(w *walker, v []byte) {
			if !null(v) {
				w.body.messages++
			}
			w.content(v)
		},
		"tools":                (*walker).functions,
		"text":                 func(w *walker, v []byte) { w.schema(field(field(v, "format"), "schema")) },
		"previous_response_id": (*walker).hidden, "conversation": (*walker).hidden, "prompt": (*walker).hidden,
	},
	Messages: {
		"messages": (*walker).messages, "system": (*walker).content, "tools": (*walker).claudeTools,
		"output_config": (*walker).output, "output_format": (*walker).output,
		"mcp_servers": (*walker).hidden, "container": (*walker).hidden,
	},
	Embeddings: {"input": (*walker).embeddings}, Moderations: {"input": (*walker).content},
	Completions: {"prompt": (*walker).embeddings, "suffix": (*walker).embeddings},
	Media:       {"prompt": (*walker).text, "input": (*walker).text, "instructions": (*walker).text},
	Gemini:      geminiMembers, GeminiEmbed: geminiMembers,
	Converse: bedrockMembers, Invoke: bedrockMembers,
	CohereChat: cohereMembers, CohereEmbed: cohereMembers, CohereRerank: cohereMembers,
	OllamaGenerate: ollamaMembers, OllamaChat: ollamaMembers, OllamaEmbed: ollamaMembers,
}

// hidden notes that the model reads more than the body has, if there is a value.
func (w *walker) hidden(v []byte) { w.body.Hidden = w.body.Hidden || !null(v) }

func (w *walker) messages(v []byte) { items(v, w.message) }

func (w *walker) output(v []byte) {
	w.schema(field(v, "schema"))
	w.schema(field(field(v, "format"), "schema"))
}

// embeddings reads a string, a list of strings, a list of token numbers, or a list of such lists.
func (w *walker) embeddings(v []byte) {
	switch first(v) {
	case '"':
		w.text(v)
	case '[':
		items(v, w.embeddings)
	default:
		if !null(v) {
			w.body.ids++
		}
	}
}

// message reads a message, of a chat or of Anthropic's API.
func (w *walker) message(v []byte) {
	w.body.messages++
	if first(v) != '{' {
		w.visible(v, 0)
		return
	}
	each(v, func(key, v []byte) {
		switch string(key) {
		case "content":
			w.content(v)
		case "name":
			if first(v) == '"' {
				w.body.names++
				w.text(v)
			}
		case "tool_calls":
			items(v, func(v []byte) { w.call(field(v, "function")) })
		case "function_call":
			w.call(v)
		case "images": // Ollama's
			items(v, func(v []byte) { w.image(v, false) })
		case "audio": // an earlier answer, by its number
			w.body.Hidden = w.body.Hidden || !null(v)
		default:
			if !silent[string(key)] {
				w.visible(v, 0)
			}
		}
	})
}

func (w *walker) call(v []byte) {
	if first(v) != '{' {
		return
	}
	w.body.calls++
	w.text(field(v, "name"))
	w.text(field(v, "arguments"))
}

// content reads a string, or a list of parts.
func (w *walker) content(v []byte) {
	switch first(v) {
	case '"':
		w.text(v)
	case '[':
		items(v, func(v []byte) { w.part(v, 0) })
	case '{':
		w.part(v, 0)
	}
}

// maxDepth is the greatest depth of content within content. A deeper value counts as text.
const maxDepth = 8

// part reads one part of a content, or one item of a Responses input.
func (w *walker) part(v []byte, depth int) {
	if first(v) != '{' || depth > maxDepth {
		w.visible(v, depth)
		return
	}
	b := w.body
	kind := str(field(v, "type"))
	switch kind {
	case "image_url", "input_image":
		url := field(v, "image_url")
		detail := field(v, "detail")
		if first(url) == '{' {
			url, detail = field(url, "url"), field(url, "detail")
		}
		w.image(url, str(detail) == "low")
	case "image":
		source := field(v, "source")
		if data := field(source, "data"); data != nil {
			w.image(data, false)
		} else {
			w.image(field(source, "url"), false)
		}
	case "input_audio":
		audio := field(v, "input_audio")
		// OpenAI counts 10 tokens for a second of audio. The formats with the fewest bytes per
		// second are 8 kHz WAV and 16 kbit/s MP3.
		perToken := 200
		if str(field(audio, "format")) == "wav" {
			perToken = 1600
		}
		w.file(field(audio, "data"), perToken)
	case "file", "input_file":
		file := v
		if inner := field(v, "file"); first(inner) == '{' {
			file = inner
		}
		w.document(field(file, "file_data"))
	case "document":
		source := field(v, "source")
		switch str(field(source, "type")) {
		case "text":
			w.text(field(source, "data"))
		case "content":
			w.nested(field(source, "content"), depth)
		default:
			w.document(field(source, "data"))
		}
		w.text(field(v, "title"))
		w.text(field(v, "context"))
	case "tool_use", "server_tool_use", "mcp_tool_use":
		b.calls++
		w.text(field(v, "name"))
		w.verbatim(field(v, "input"))
	case "function_call", "custom_tool_call":
		w.call(v)
		w.text(field(v, "input"))
	case "tool_result", "function_call_output", "custom_tool_call_output":
		b.calls++
		w.nested(field(v, "content"), depth)
		w.nested(field(v, "output"), depth)
	case "item_reference", "redacted_thinking", "compaction":
		b.Hidden = true
	default: // text of all kinds, messages, thinking, and unknown kinds
		if field(v, "role") != nil {
			b.messages++
		}
		if enc := field(v, "encrypted_content"); enc != nil && !null(enc) {
			b.Hidden = true
		}
		each(v, func(key, v []byte) {
			switch {
			case string(key) == "content" || string(key) == "summary":
				w.nested(v, depth)
			case !silent[string(key)]:
				w.visible(v, depth+1)
			}
		})
	}
}

func (w *walker) nested(v []byte, depth int) {
	switch first(v) {
	case '"':
		w.text(v)
	case '[':
		items(v, func(v []byte) { w.part(v, depth+1) })
	case '{':
		w.part(v, depth+1)
	}
}

// silent has the fields that the model does not read.
var silent = map[string]bool{
	"type": true, "id": true, "role": true, "status": true, "call_id": true, "tool_call_id": true, "tool_use_id": true,
	"cache_control": true, "prompt_cache_breakpoint": true, "signature": true, "encrypted_content": true,
	"annotations": true, "citations": true, "logprobs": true, "is_error": true, "phase": true, "weight": true,
}

// visible reads a value of an unknown kind: all of its strings and numbers count.
func (w *walker) visible(v []byte, depth int) {
	switch first(v) {
	case '"':
		w.text(v)
	case '[', '{':
		if depth > maxDepth {
			w.verbatim(v)
			return
		}
		items(v, func(v []byte) { w.visible(v, depth+1) })
		each(v, func(key, v []byte) {
			if !silent[string(key)] {
				w.visible(v, depth+1)
			}
		})
	case 't', 'f', 'n', 0:
	default:
		w.add(v)
	}
}

// bytesPerFileToken is a guess for files whose pages cannot be counted. A page of 50 kB counts as
// 1,500 to 3,000 tokens.
const bytesPerFileToken = 16

func (w *walker) file(data []byte, perToken int) {
	if data == nil || null(data) { // a number or a URL stands for the file
		w.body.Hidden = true
		return
	}
	w.body.spare += int64(len(data))
	w.medium(medium{tokens: int64(len(data)*3/4/perToken) + 1})
}

// document reads a file that may be a PDF.
func (w *walker) document(data []byte) {
	if w.count == nil && len(data) > 0 { // the second pass skips media
		if pages, ok := pdfPages(data); ok {
			w.body.spare += int64(len(data))
			w.medium(medium{pages: pages})
			return
		}
		w.body.Guessed = w.body.Guessed || !null(data)
	}
	w.file(data, bytesPerFileToken)
}

func (w *walker) image(data []byte, low bool) {
	if data == nil || null(data) {
		w.body.Hidden = true
		return
	}
	width, height := 0, 0
	w.body.spare += int64(len(data))
	if w.count == nil { // the second pass skips media
		width, height = imageSize(data)
	}
	w.medium(medium{width: width, height: height, low: low})
}

func (w *walker) medium(m medium) {
	w.body.Attachments++
	if len(w.body.media) < maxMedia {
		w.body.media = append(w.body.media, m)
	}
}

// imageSize reads the size of an inline base64 image, with or without "data:" before it. It returns
// 0, 0 for anything else.
func imageSize(v []byte) (width, height int) {
	const enough = 1 << 18 // bytes of base64: a JPEG may have so much metadata before its size
	if len(v) < 2 || v[0] != '"' {
		return 0, 0
	}
	v = v[1 : len(v)-1]
	v = v[:min(len(v), enough)]
	if bytes.HasPrefix(v, []byte("http")) {
		return 0, 0
	}
	if bytes.HasPrefix(v, []byte("data:")) {
		_, v, _ = bytes.Cut(v, []byte(","))
	}
	if bytes.IndexByte(v, '\\') >= 0 { // some encoders write "\/"
		v = bytes.ReplaceAll(v, []byte(`\/`), []byte("/"))
	}
	c, _, err := image.DecodeConfig(io.LimitReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(v)), enough))
	if err != nil || c.Width <= 0 || c.Height <= 0 {
		return 0, 0
	}
	return c.Width, c.Height
}

// functions reads OpenAI's tools. Their rendering is not published. The figures are from OpenAI's
// cookbook ("How to count tokens with tiktoken"). A function costs a constant and the text
// "name:description". A property costs 3 and the text "name:type:description". A value of an enum
// costs 3. All functions together cost 12.
func (w *walker) functions(v []byte) {
	b := w.body
	found := false
	items(v, func(v []byte) {
		f := v
		if inner := field(v, "function"); first(inner) == '{' {
			f = inner
		} else if kind := str(field(v, "type")); kind != "" && kind != "function" && kind != "custom" {
			b.Hidden = true // the server runs the tool, and adds its results
			return
		}
		found = true
		b.schemas = true
		b.tools++
		w.line = appendText(w.line[:0], field(f, "name"))
		w.line = append(w.line, ':')
		w.line = appendSentence(w.line, field(f, "description"))
		w.add(w.line)
		w.properties(field(f, "parameters"), 0)
		if format := field(f, "format"); format != nil { // the grammar of a custom tool
			w.visible(format, 0)
		}
	})
	if found {
		b.toolMark += 12
	}
}

func (w *walker) properties(schema []byte, depth int) {
	b := w.body
	if depth > maxDepth {
		w.verbatim(schema)
		return
	}
	opened := false
	each(field(schema, "properties"), func(key, v []byte) {
		if !opened {
			opened = true
			b.toolMark += 3
		}
		b.toolMark += 3
		w.line = append(w.line[:0], key...)
		w.line = append(w.line, ':')
		w.line = appendText(w.line, field(v, "type"))
		w.line = append(w.line, ':')
		w.line = appendSentence(w.line, field(v, "description"))
		w.add(w.line)
		if enum := field(v, "enum"); first(enum) == '[' {
			b.toolMark -= 3
			items(enum, func(v []byte) {
				b.toolMark += 3
				w.visible(v, maxDepth)
			})
		}
		w.properties(v, depth+1)
	})
	each(schema, func(key, v []byte) {
		switch string(key) {
		case "items":
			w.properties(v, depth+1)
		case "anyOf", "oneOf", "allOf":
			items(v, func(v []byte) { w.properties(v, depth+1) })
		case "$defs", "definitions":
			w.verbatim(v)
		}
	})
}

// claudeTools reads Anthropic's tools. The model reads them as JSON, after a system prompt for
// tools. That prompt has 159 to 530 tokens by model and tool choice, and 346 for Claude 4 ("Tool
// use with Claude", pricing).
func (w *walker) claudeTools(v []byte) {
	b := w.body
	found := false
	items(v, func(v []byte) {
		if kind := str(field(v, "type")); kind != "" && kind != "custom" && field(v, "input_schema") == nil {
			b.Hidden = true
			return
		}
		found = true
		b.schemas = true
		b.tools++
		w.text(field(v, "name"))
		w.text(field(v, "description"))
		w.verbatim(field(v, "input_schema"))
	})
	if found {
		b.toolMark += 346
	}
}

func (w *walker) schema(v []byte) {
	if v == nil || null(v) {
		return
	}
	w.body.schemas = true
	w.verbatim(v)
}

// verbatim counts a value as compact JSON.
func (w *walker) verbatim(v []byte) {
	if v == nil || null(v) {
		return
	}
	compact := bytes.NewBuffer(w.buf[:0])
	if json.Compact(compact, v) == nil {
		w.buf = compact.Bytes()
		w.add(w.buf)
	}
}

// text counts a JSON string and skips any other value.
func (w *walker) text(v []byte) {
	if first(v) != '"' {
		return
	}
	v = v[1 : len(v)-1]
	if bytes.IndexByte(v, '\\') >= 0 || !utf8.Valid(v) {
		w.buf = unquote(w.buf[:0], v)
		if bytes.Contains(v, []byte(`\u`)) {
			w.body.spare += int64(max(len(v)-len(w.buf), 0))
		}
		v = w.buf
	}
	w.add(v)
}

func (w *walker) add(text []byte) {
	if w.count != nil {
		w.tokens += w.count.Count(string(text))
		return
	}
	w.body.shape.add(text)
	w.body.TextBytes = w.body.shape.bytes
}

// appendText appends the text of a JSON string, or the JSON of another value.
func appendText(dst, v []byte) []byte {
	if first(v) == '"' {
		return unquote(dst, v[1:len(v)-1])
	}
	return append(dst, v...)
}

// appendSentence appends the text of a JSON string without its full stop.
func appendSentence(dst, v []byte) []byte {
	if first(v) != '"' {
		return dst
	}
	return bytes.TrimSuffix(appendText(dst, v), []byte("."))
}
