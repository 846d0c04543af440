package tokens

import (
	"cmp"
	"math"
	"strings"
)

// family has the published facts about a family of models. It need not be complete: answers correct
// anything that is missing or outdated.
type family struct {
	prefix    string // of the name; it matches whole words, so gpt-4.1 does not belong to gpt-4
	encoding  *encoding
	maxOutput int64 // the most tokens of one answer
	image     imageCost
}

// imageCost is the cost of an image. It is base + tile for each tile of 512 px, or perPatch for
// each patch of 32 px. patches is the most patches that count (if zero, 1536). The figures are from
// OpenAI's guide "Images and vision".
type imageCost struct{ base, tile, perPatch, patches float64 }

var (
	cl100k = &encoding{name: "cl100k_base", perTool: 10}
	o200k  = &encoding{name: "o200k_base", perTool: 7}

	defaultImage = imageCost{base: 85, tile: 170}
)

// families lists a longer prefix before a shorter prefix that it begins with. The encodings are
// from tiktoken's model.py, the maxima from OpenAI's list of models.
var families = []family{
	{"gpt-5.6", o200k, 128000, imageCost{perPatch: 1.2, patches: 30000}},
	{"gpt-5-pro", o200k, 272000, imageCost{base: 70, tile: 140}},
	{"gpt-5-nano", o200k, 128000, imageCost{perPatch: 2.46}},
	{"gpt-5-mini", o200k, 128000, imageCost{perPatch: 1.62}},
	{"gpt-5", o200k, 128000, imageCost{base: 70, tile: 140}},
	{"gpt-4.1-nano", o200k, 32768, imageCost{perPatch: 2.46}},
	{"gpt-4.1-mini", o200k, 32768, imageCost{perPatch: 1.62}},
	{"gpt-4.1", o200k, 32768, defaultImage},
	{"gpt-4.5", o200k, 16384, defaultImage},
	{"gpt-4o-2024-05-13", o200k, 4096, defaultImage},
	{"gpt-4o-mini", o200k, 16384, imageCost{base: 2833, tile: 5667}},
	{"gpt-4o", o200k, 16384, defaultImage},
	{"chatgpt-4o", o200k, 16384, defaultImage},
	{"gpt-oss", o200k, 65536, imageCost{}},
	{"o1", o200k, 100000, imageCost{base: 75, tile: 150}},
	{"o3", o200k, 100000, imageCost{base: 75, tile: 150}},
	{"o4-mini", o200k, 100000, imageCost{perPatch: 1.72}},
	{"gpt-4-turbo", cl100k, 4096, defaultImage},
	{"gpt-4", cl100k, 8192, defaultImage},
	{"gpt-3.5-turbo", cl100k, 4096, imageCost{}},
	{"gpt-35-turbo", cl100k, 4096, imageCost{}},
	{"text-embedding-ada-002", cl100k, 0, imageCost{}},
	{"text-embedding-3", cl100k, 0, imageCost{}},
}

// Known reports whether facts about a model's family are published: how it counts text and images, and
// how much it writes.
func Known(model string) bool { return familyOf(model) != nil }

// familyOf returns the family of a model, or nil if it is unknown. It also reads the names of
// routers and of tuned models: openai/gpt-4o, ft:gpt-4o-2024-08-06:org::id.
func familyOf(model string) *family {
	model = model[strings.LastIndexByte(model, '/')+1:]
	model = strings.TrimPrefix(model, "ft:")
	for i := range families {
		f := &families[i]
		if rest, ok := strings.CutPrefix(model, f.prefix); ok && (rest == "" || rest[0] == '-' || rest[0] == ':' ||
			f.prefix == "gpt-5" && rest[0] == '.') { // gpt-5.1 has gpt-5's encoding; gpt-4.1 did not have gpt-4's
			return f
		}
	}
	return nil
}

// encoding is a vocabulary of tiktoken.
type encoding struct {
	name    string
	perTool int64 // tokens of a function's definition beyond its text
}

// tokens counts an image of the given size as OpenAI does. A size of 0 is unknown, and counts as
// the most expensive one.
func (c imageCost) tokens(width, height int, low bool) int64 {
	const side = 32
	w, h := float64(width), float64(height)
	if c.perPatch > 0 {
		patches := cmp.Or(c.patches, 1536)
		n := patches
		if width > 0 {
			n = min(math.Ceil(w/side)*math.Ceil(h/side), patches)
		}
		return int64(math.Ceil(n * c.perPatch))
	}
	if c.tile == 0 {
		c = defaultImage
	}
	if low {
		return int64(c.base)
	}
	tiles := 8.0 // 768 × 2048, the largest that the two scalings leave
	if width > 0 {
		scale := min(1, 2048/max(w, h))
		scale = min(scale, 768/min(w, h))
		tiles = math.Ceil(w*scale/512) * math.Ceil(h*scale/512)
	}
	return int64(c.base + c.tile*tiles)
}

// claudeImage counts an image as Anthropic documents it: a token for each patch of 28 px. First the
// image is scaled down to the model's longest edge and most tokens. These are 2576 px and 4784
// tokens, and before Claude 4.7 1568 of both. A size of 0 is unknown.
// https://platform.claude.com/docs/en/build-with-claude/vision
func claudeImage(model string, width, height int) int64 {
	edge, most := 2576.0, 4784.0
	if olderClaude(model) {
		edge, most = 1568, 1568
	}
	if width <= 0 {
		return int64(most)
	}
	w, h := float64(width), float64(height)
	scale := min(1, edge/max(w, h))
	return int64(min(most, math.Ceil(w*scale/28)*math.Ceil(h*scale/28)))
}

// olderClaude reports whether a model is older than Claude 4.7.
func olderClaude(model string) bool {
	_, name, ok := strings.Cut(model, "claude-")
	if !ok {
		return false
	}
	for _, tier := range []string{"opus-", "sonnet-", "haiku-"} {
		name = strings.TrimPrefix(name, tier)
	}
	if name == "" || name[0] < '1' || name[0] > '4' || len(name) > 1 && name[1] >= '0' && name[1] <= '9' {
		return false
	}
	return !(strings.HasPrefix(name, "4-7") || strings.HasPrefix(name, "4-8") || strings.HasPrefix(name, "4-9"))
}

// geminiImage counts an image as Google documents it. Gemini 3 counts the same for each image.
// Older models count 258 for each tile of 768 px, or 258 in all if both sides are at most 384 px.
// https://ai.google.dev/gemini-api/docs/tokens, media-resolution
func geminiImage(model string, width, height int) int64 {
	const tile = 258
	older := strings.Contains(model, "gemini-1") || strings.Contains(model, "gemini-2")
	switch {
	case !older:
		return 1120
	case width <= 0:
		return 16 * tile
	case width <= 384 && height <= 384:
		return tile
	}
	return int64(math.Ceil(float64(width)/768) * math.Ceil(float64(height)/768) * tile)
}

// page is the most tokens of one page of a PDF, by the documentation of the model's vendor.
// Anthropic says 1,500 to 3,000, for its text and an image of it. Google says 560 since Gemini 3,
// and 258 before. OpenAI counts the text of the page and an image of it. OpenAI does not say how
// many tokens the text of a full page has: 1,000 are assumed.
// https://platform.claude.com/docs/en/build-with-claude/pdf-support,
// https://ai.google.dev/gemini-api/docs/document-processing,
// https://platform.openai.com/docs/guides/pdf-files
func (b *Body) page(look imageCost) int64 {
	switch {
	case b.API == Messages || strings.Contains(b.Model, "claude"):
		return 3000
	case b.API != Gemini && b.API != GeminiEmbed:
		return 1000 + look.tokens(1224, 1584, false) // a letter page at 144 dpi
	case strings.Contains(b.Model, "gemini-1") || strings.Contains(b.Model, "gemini-2"):
		return 258
	}
	return 560
}
