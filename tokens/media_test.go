package tokens_test

import (
	"strings"
	"testing"

	"github.com/paceline-go/paceline/tokens"
)

// The base64 of a JPEG begins with a slash, which some encoders escape. Its size is read
// nevertheless.
func TestImageThatBeginsWithAnEscape(t *testing.T) {
	data := strings.ReplaceAll(asJPEG(t, 2048, 4096), "/", `\/`)
	if !strings.HasPrefix(data, `\/9j`) {
		t.Fatalf("it begins with %.8s", data)
	}
	body := `{"model":"claude-x","max_tokens":1,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"` + data + `"}}]}]}`
	if got, want := estimate(t, newEstimator(t, tokens.Config{}), tokens.Messages, body).Input, int64(6359); got != want {
		t.Errorf("%d tokens, want %d", got, want)
	}
}

// An inline base64 file counts by its bytes: three for four characters. A second of audio is 10
// tokens, in the format with the fewest bytes.
func TestFilesCountByTheirBytes(t *testing.T) {
	const bytes = 480_000
	data := strings.Repeat("QUJD", bytes/3)
	for name, c := range map[string]struct {
		api  tokens.API
		part string
		want float64
	}{
		"a document of 480 kB":                {tokens.Messages, `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + data + `"}}`, bytes / 16},
		"a file":                              {tokens.Chat, `{"type":"file","file":{"file_data":"` + data + `"}}`, bytes / 16},
		"half a minute of sound, at 8 kHz":    {tokens.Chat, `{"type":"input_audio","input_audio":{"format":"wav","data":"` + data + `"}}`, 300},
		"four minutes of it, at 16,000 bit/s": {tokens.Chat, `{"type":"input_audio","input_audio":{"format":"mp3","data":"` + data + `"}}`, 2400},
	} {
		of := func(part string) float64 {
			body := `{"model":"brand-new","max_tokens":1,"messages":[{"role":"user","content":[` + part + `]}]}`
			return float64(estimate(t, newEstimator(t, tokens.Config{}), c.api, body).Input)
		}
		without := of(`{"type":"text","text":""}`)
		if got := (of(c.part) - without) / 1.5; got < c.want*0.99-2 || got > c.want*1.01+2 {
			t.Errorf("%s: %v tokens, want %v", name, got, c.want)
		}
	}
}

// An image of one pixel is an image. Claude counts its smallest patch.
func TestImageOfAPixel(t *testing.T) {
	for _, side := range [][2]int{{1, 1}, {1, 28}, {28, 1}} {
		body := `{"model":"claude-x","max_tokens":1,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` +
			asPNG(t, side[0], side[1]) + `"}}]}]}`
		// The estimate is 1.5 times 7 + 1.
		if got := estimate(t, newEstimator(t, tokens.Config{}), tokens.Messages, body).Input; got != 12 {
			t.Errorf("%d × %d: %d tokens", side[0], side[1], got)
		}
	}
}
