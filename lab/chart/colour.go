package chart

import "image/color"

// hue is one colour on a light and on a dark ground.
type hue struct{ light, dark string }

// palette has the hues of series, in order. Any two differ by at least 0.1 in Oklab for readers with either of the three
// kinds of dichromacy as well, and each by a contrast of 3 from its ground.
var palette = [6]hue{
	{"#1f83d9", "#4aa3f5"}, // blue
	{"#d9772b", "#e08a3c"}, // orange
	{"#0a4a3c", "#3fe8cf"}, // green
	{"#c21f86", "#f0458f"}, // pink
	{"#5b2bd9", "#9a55ff"}, // violet
	{"#7a5a12", "#ffd84a"}, // brown; yellow
}

// dashes are the lengths of marks and gaps, in pixels. A ragged line is hard to follow when it is dashed too, so only the last colours
// have dashes.
var dashes = [len(palette)][]int{nil, nil, nil, {7, 3}, {2, 3}, {10, 3, 2, 3}}

// Grounds and inks.
var (
	ground  = hue{"#ffffff", "#16191f"}
	ink     = hue{"#1c2026", "#eceff3"}
	muted   = hue{"#555c66", "#aab2bd"} // for labels
	gridInk = hue{"#e4e7eb", "#2c323b"}
	axisInk = hue{"#8b929c", "#7a828d"}
	weakBar = hue{"#a9b4c2", "#5b6675"}
)

// Opacities of the lines and areas that stand for many series, in palette[0].
const (
	bandShade     = 0.22
	bandShadeDark = 0.34
	eachShade     = 0.45
)

// rgba reads "#rrggbb".
func rgba(s string, opacity float64) color.NRGBA {
	digit := func(c byte) uint8 {
		if c >= 'a' {
			return c - 'a' + 10
		}
		return c - '0'
	}
	pair := func(i int) uint8 { return digit(s[i])<<4 | digit(s[i+1]) }
	return color.NRGBA{R: pair(1), G: pair(3), B: pair(5), A: uint8(opacity*255 + 0.5)}
}
