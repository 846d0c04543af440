package durable

import (
	"crypto/sha256"
	"encoding/base32"
	"mime"
	"slices"
	"strings"
)

// longestName is the most bytes in a name that FileName returns. With an ending, and another one of a
// program, it stays below the 255 bytes that file systems allow.
const longestName = 200

// keptOfName is how many bytes of a too long name are kept.
const keptOfName = 120

const lowerHex = "0123456789abcdef"

// base32Digits are the digits of base 32, all in lower case.
const base32Digits = "0123456789abcdefghijklmnopqrstuv"

// FileName returns the name of the file for an id that a stranger chose, without an ending. The name is safe
// on Linux, macOS and Windows, and in a shell or a script. It is ASCII without separators. No system reserves
// it, it is not hidden, and it does not look like a flag. No two ids have the same name, even on a file system
// without a difference between upper and lower case.
//
// taken are names in lower case with another use.
// No name is one of them, with or without a dot and more after it.
//
// Most ids are their own name. Bytes other than letters, digits, spaces and -_.@,= are written %xx.
// So are dots and spaces at either end, a dash at the beginning, and the first letter of a reserved
// name.
//
// If the id has capitals, + and a number in base 32 follow, lowest digit first. The number has a
// bit for each letter: 1 for a capital. If the name would be longer than longestName, its beginning is
// keptOfName, followed by ++ and the SHA-256 of the id.
func FileName(id string, taken ...string) string {
	name, capitals := writtenName(id)
	if isReservedName(name, taken) {
		c := name[0]
		name = "%" + string([]byte{lowerHex[c>>4], lowerHex[c&15]}) + name[1:]
		capitals = capitals[1:] // the first letter is written %xx now
	}
	if tail := capitalsMask(capitals); tail != "" {
		name += "+" + tail
	}
	if len(name) <= longestName {
		return name
	}
	name = name[:keptOfName]
	if i := strings.LastIndexByte(name, '%'); i > keptOfName-3 {
		name = name[:i]
	}
	sum := sha256.Sum256([]byte(id))
	return name + "++" + base32.NewEncoding(base32Digits).WithPadding(base32.NoPadding).EncodeToString(sum[:])
}

// writtenName writes bytes that may not be in a name as %xx. It reports for each other letter whether
// it is a capital.
func writtenName(id string) (name string, capitals []bool) {
	b := make([]byte, 0, len(id)+16)
	for i := range len(id) {
		c := id[i]
		lower, upper := c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z'
		plain := lower || upper || c >= '0' && c <= '9' || c == '_' || c == '@' || c == ',' || c == '=' ||
			c == '-' && i > 0 || (c == '.' || c == ' ') && i > 0 && i < len(id)-1
		if !plain {
			b = append(b, '%', lowerHex[c>>4], lowerHex[c&15])
			continue
		}
		if b = append(b, c); lower || upper {
			capitals = append(capitals, upper)
		}
	}
	return string(b), capitals
}

// capitalsMask returns a number in base 32, lowest digit first, with a bit for each letter: 1 for a
// capital.
func capitalsMask(capitals []bool) string {
	var b []byte
	for some := range slices.Chunk(capitals, 5) {
		n := 0
		for i, is := range some {
			if is {
				n |= 1 << i
			}
		}
		b = append(b, base32Digits[n])
	}
	return strings.TrimRight(string(b), "0")
}

// isReservedName reports whether a name, up to its first dot, is taken or is a device on Windows.
func isReservedName(name string, taken []string) bool {
	base, _, _ := strings.Cut(name, ".")
	base = strings.TrimRight(strings.ToLower(base), " ")
	if slices.Contains(taken, base) {
		return true
	}
	switch base {
	case "con", "prn", "aux", "nul":
		return true
	}
	port, is := strings.CutPrefix(base, "com")
	if !is {
		port, is = strings.CutPrefix(base, "lpt")
	}
	return is && len(port) == 1 && port[0] >= '0' && port[0] <= '9'
}

// fileEndings are the endings for media types whose files users open by name.
var fileEndings = map[string]string{
	"application/json": ".json", "application/x-ndjson": ".jsonl", "application/jsonl": ".jsonl",
	"application/jsonlines": ".jsonl",
	"application/geo+json":  ".geojson", "application/pdf": ".pdf", "application/zip": ".zip", "application/gzip": ".gz",
	"application/x-gzip": ".gz",
	"application/x-tar":  ".tar", "application/xml": ".xml", "application/xhtml+xml": ".html",
	"application/javascript": ".js",
	"application/yaml":       ".yaml", "application/x-yaml": ".yaml", "application/rtf": ".rtf",
	"application/epub+zip": ".epub", "application/sql": ".sql",
	"application/vnd.apache.parquet": ".parquet", "application/vnd.ms-excel": ".xls", "application/msword": ".doc",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":         ".xlsx",
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document":   ".docx",
	"application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
	"text/html": ".html", "text/csv": ".csv", "text/tab-separated-values": ".tsv", "text/xml": ".xml", "text/css": ".css",
	"text/javascript": ".js", "text/markdown": ".md", "text/calendar": ".ics", "text/vcard": ".vcf", "text/yaml": ".yaml",
	"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "image/svg+xml": ".svg",
	"image/tiff": ".tiff",
	"image/bmp":  ".bmp", "image/avif": ".avif", "image/heic": ".heic", "image/x-icon": ".ico",
	"image/vnd.microsoft.icon": ".ico",
	"audio/mpeg":               ".mp3", "audio/wav": ".wav", "audio/x-wav": ".wav", "audio/ogg": ".ogg",
	"audio/flac": ".flac",
	"audio/mp4":  ".m4a",
	"video/mp4":  ".mp4", "video/webm": ".webm", "video/mpeg": ".mpeg", "video/quicktime": ".mov",
	"font/woff": ".woff", "font/woff2": ".woff2", "font/ttf": ".ttf",
}

// FileEnding returns the ending of the name of a file with this Content-Type, or ".bin" for an unknown
// type. It has one dot, at its beginning, so names that differ without endings differ with them. It
// is the same on every machine.
func FileEnding(contentType string) string {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil { // most often only a parameter is wrong
		media, _, _ = strings.Cut(contentType, ";")
		media = strings.ToLower(strings.TrimSpace(media))
	}
	if known, ok := fileEndings[media]; ok {
		return known
	}
	switch {
	case strings.HasSuffix(media, "+json"):
		return ".json"
	case strings.HasSuffix(media, "+xml"):
		return ".xml"
	case strings.HasPrefix(media, "text/"):
		return ".txt"
	}
	return ".bin"
}
