package chart

// Hue is a colour on a light and on a dark ground.
type Hue struct{ Light, Dark string }

func exported(h hue) Hue { return Hue{h.light, h.dark} }

// Colours are those of series, of texts and of the ground.
func Colours() (series []Hue, texts map[string]Hue, on Hue) {
	for _, h := range palette {
		series = append(series, exported(h))
	}
	return series, map[string]Hue{"ink": exported(ink), "muted": exported(muted)}, exported(ground)
}

var Quantile = quantile
