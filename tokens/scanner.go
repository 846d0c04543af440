package tokens

// scanner finds the usage in a JSON document that comes in pieces. It keeps only the few members
// that it needs, so its memory does not grow with the document. That matters because a
// response.completed event repeats the whole answer.
//
// scanner looks for usage at the top, and in four members at the top: response (OpenAI Responses),
// message (Anthropic), delta (Cohere) and x_groq. It looks for the counterparts of usage at Gemini
// and Ollama, and for type and error at the top. Of a list of documents it reads the last, since
// Gemini streams such lists if it does not stream events. It does not judge the rest of the
// document. The zero value is ready.
type scanner struct {
	state  state
	open   [maxOpen]frame // the objects on the path to the current byte, of those that are read
	depth  int            // the number of open objects
	skip   int            // depth inside a value that is skipped
	quoted bool           // inside a string
	escape bool           // after a backslash in a string
	keep   *name          // destination of the string; nil: it is not kept
	key    name           // of the member; inside a value that is skipped, a string of that
	number name           // a number, true, false or null
	finish uint8

	kind     name
	usage    [places]counted
	failed   bool // the document has an error that is not null
	finished bool // a choice of it has a reason why it ends
	list     bool // the document is a list of documents
	closed   bool // the document is whole
	broken   bool // cannot be JSON
}

// Where a value that is skipped may say why an answer ends.
const (
	elsewhere = iota
	afterName
	atReason
)

const finishReason = "finish_reason"

const maxOpen = 4 // root, response, usage, details

type state uint8

const (
	wantDocument state = iota
	wantKey
	wantColon
	wantValue
	inLiteral
	wantComma
)

// The places of a usage object.
const (
	atTop = iota
	inside
	billed   // Cohere: billed units; some answers have nothing else
	measured // Bedrock: the metrics of an invocation
	places
)

type role uint8

const (
	isRoot role = iota
	isInner
	isUsage
	isTokens // Cohere: inside usage
	isMeta   // Cohere: in place of usage
	isInputDetails
	isCacheDetails
	isOutputDetails
	isNothing
)

type frame struct {
	role  role
	place uint8
}

// name is a short text. A longer text equals none of the names that the scanner looks for.
type name struct {
	b [40]byte
	n int
}

func (n *name) add(p []byte) {
	if n.n+len(p) > len(n.b) {
		n.n = len(n.b) + 1
		return
	}
	n.n += copy(n.b[n.n:], p)
}

func (n *name) text() []byte {
	if n.n > len(n.b) {
		return nil
	}
	return n.b[:n.n]
}

// feed reads the next piece.
func (s *scanner) feed(p []byte) {
	for i := 0; i < len(p) && !s.broken; {
		if s.quoted {
			i = s.inString(p, i)
			continue
		}
		c := p[i]
		if s.skip > 0 {
			if s.finish != elsewhere {
				s.finishes(c)
			}
			switch c {
			case '"':
				s.quoted = true
				s.key.n = 0
			case '{', '[':
				s.skip++
			case '}', ']':
				if s.skip--; s.skip == 0 {
					s.state = wantComma
				}
			}
			i++
			continue
		}
		if s.state == inLiteral {
			switch c {
			case ',', '}', ' ', '\n', '\r', '\t':
				s.literal()
				s.state = wantComma
				continue
			}
			s.number.add(p[i : i+1])
			i++
			continue
		}
		i++
		if c == ' ' || c == '\n' || c == '\r' || c == '\t' {
			continue
		}
		s.step(c)
	}
}

// finishes reads one byte after the name finish_reason, which is within the skipped choices.
func (s *scanner) finishes(c byte) {
	switch {
	case c == ' ' || c == '\n' || c == '\r' || c == '\t':
	case s.finish == afterName && c == ':':
		s.finish = atReason
	default:
		s.finished = s.finished || s.finish == atReason && c != 'n'
		s.finish = elsewhere
	}
}

// step reads one byte between strings and literals.
func (s *scanner) step(c byte) {
	switch s.state {
	case wantDocument:
		switch {
		case c == '{' && !s.closed:
			s.push(frame{role: isRoot})
		case c == '[' && !s.closed && !s.list:
			s.list = true
		case c == ']' && !s.closed && s.list:
			s.closed = true
		case c == ',' && !s.closed && s.list:
		default:
			s.broken = true
		}
	case wantKey:
		switch c {
		case '"':
			s.key.n = 0
			s.quoted, s.keep = true, &s.key
		case '}':
			s.pop()
		default:
			s.broken = true
		}
	case wantColon:
		s.state = wantValue
		s.broken = c != ':'
	case wantValue:
		s.value(c)
	case wantComma:
		switch c {
		case ',':
			s.state = wantKey
		case '}':
			s.pop()
		default:
			s.broken = true
		}
	}
}

func (s *scanner) value(c byte) {
	f := s.open[s.depth-1]
	key := s.key.text()
	if f.role == isRoot && string(key) == "error" && c != 'n' {
		s.failed = true
	}
	switch c {
	case '{':
		child := f.child(key)
		if child.role == isNothing || s.depth == maxOpen {
			s.skip = 1
			return
		}
		if child.role == isUsage { // an object inside a usage does not come here
			s.usage[child.place] = counted{present: true} // if there are several, the last one counts
		}
		s.push(child)
	case '[':
		s.skip = 1
	case '"':
		if k := f.count(key); k != noCount {
			s.wrong(f, k)
		}
		s.quoted = true
		if f.role == isRoot && string(key) == "type" {
			s.kind.n = 0
			s.keep = &s.kind
		}
	case ',', '}', ']', ':':
		s.broken = true
	default:
		s.number.n = 0
		s.number.add([]byte{c})
		s.state = inLiteral
	}
}

func (s *scanner) push(f frame) {
	s.open[s.depth] = f
	s.depth++
	s.state = wantKey
}

func (s *scanner) pop() {
	s.depth--
	s.state = wantComma
	if s.depth == 0 {
		s.state, s.closed = wantDocument, !s.list
	}
}

// inString reads to the end of the string or of p, and returns the index after that.
func (s *scanner) inString(p []byte, i int) int {
	if s.escape {
		s.escape = false
		if s.keep != nil {
			s.keep.n = len(s.keep.b) + 1 // names of interest are never escaped
		} else if s.skip > 0 {
			s.key.n = len(s.key.b) + 1
		}
		return i + 1
	}
	rest := p[i:]
	stop := 0
	for stop < len(rest) && rest[stop] != '"' && rest[stop] != '\\' {
		stop++
	}
	if s.keep != nil {
		s.keep.add(rest[:stop])
	} else if s.skip > 0 && (stop == len(rest) || s.key.n > 0) { // a string in several pieces
		s.key.add(rest[:stop])
	}
	if stop == len(rest) {
		return len(p)
	}
	if rest[stop] == '\\' {
		s.escape = true
		return i + stop + 1
	}
	s.quoted, s.keep = false, nil
	if s.skip > 0 {
		if name := rest[:stop]; s.key.n == 0 && string(name) == finishReason || string(s.key.text()) == finishReason {
			s.finish = afterName
		}
	}
	if s.skip == 0 {
		if s.state == wantKey {
			s.state = wantColon
		} else {
			s.state = wantComma
		}
	}
	return i + stop + 1
}

// same is the place of the object around.
const same = places

// children are the objects that are read, by what they are in. Others are skipped.
var children = [...]map[string]frame{
	isRoot: {
		"usage": {isUsage, atTop}, "usageMetadata": {isUsage, atTop}, "meta": {isMeta, atTop},
		"amazon-bedrock-invocationMetrics": {isUsage, measured},
		"response":                         {role: isInner}, "message": {role: isInner}, "delta": {role: isInner}, "x_groq": {role: isInner},
	},
	isInner: {"usage": {isUsage, inside}},
	isUsage: usageParts, isMeta: usageParts, isNothing: nil,
}

var usageParts = map[string]frame{
	"tokens": {isTokens, same}, "billed_units": {isTokens, billed}, "cache_creation": {isCacheDetails, same},
	"prompt_tokens_details": {isInputDetails, same}, "input_tokens_details": {isInputDetails, same},
	"completion_tokens_details": {isOutputDetails, same}, "output_tokens_details": {isOutputDetails, same},
}

func (f frame) child(key []byte) frame {
	child, read := children[f.role][string(key)]
	if !read {
		return frame{role: isNothing}
	}
	if child.place == same {
		child.place = f.place
	}
	return child
}

// numbers are the members that are counted, by the object that they are in.
var numbers = [...]map[string]count{
	isRoot:  {"prompt_eval_count": countInput, "eval_count": countOutput}, // Ollama
	isUsage: usageNames, isTokens: usageNames,
	isInputDetails:  {"cached_tokens": countCached, "cache_write_tokens": countWrite, "audio_tokens": countAudioInput},
	isCacheDetails:  {"ephemeral_1h_input_tokens": countHour},
	isOutputDetails: {"reasoning_tokens": countReasoning, "thinking_tokens": countReasoning, "audio_tokens": countAudioOutput},
	isNothing:       nil,
}

func (f frame) count(key []byte) count {
	if k, ok := numbers[f.role][string(key)]; ok {
		return k
	}
	return noCount
}

// usageNames are the members of a usage.
var usageNames = map[string]count{
	"prompt_tokens": countInput, "input_tokens": countInput, "inputTokens": countInput, "promptTokenCount": countInput,
	"completion_tokens": countOutput, "output_tokens": countOutput, "outputTokens": countOutput,
	"candidatesTokenCount": countOutput,
	"total_tokens":         countTotal, "totalTokens": countTotal, "totalTokenCount": countTotal,
	"cache_read_input_tokens": countRead, "cacheReadInputTokens": countRead,
	"cache_creation_input_tokens": countWrite, "cacheWriteInputTokens": countWrite,
	"inputTokenCount": countInput, "outputTokenCount": countOutput, "cacheReadInputTokenCount": countRead,
	"cacheWriteInputTokenCount": countWrite,
	"cached_tokens":             countCached, "prompt_cache_hit_tokens": countCached,
	"cachedContentTokenCount": countCached,
	"thoughtsTokenCount":      countReasoning, "toolUsePromptTokenCount": countTool,
}

func (s *scanner) wrong(f frame, k count) {
	u := &s.usage[f.place]
	u.wrong, u.bad = true, k
}

// literal evaluates the number, true, false or null that has ended.
func (s *scanner) literal() {
	f := s.open[s.depth-1]
	k := f.count(s.key.text())
	if k == noCount {
		return
	}
	text := s.number.text()
	if string(text) == "null" {
		return
	}
	var n int64
	for _, c := range text {
		if c < '0' || c > '9' || n > maxTokens {
			s.wrong(f, k)
			return
		}
		n = n*10 + int64(c-'0')
	}
	if n > maxTokens || len(text) == 0 {
		s.wrong(f, k)
		return
	}
	s.usage[f.place].set(k, n)
	s.usage[f.place].present = true
}
