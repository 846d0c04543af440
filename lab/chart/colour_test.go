package chart_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/paceline-go/paceline/lab/chart"
)

// linear is a colour as amounts of light.
type linear [3]float64

func light(t *testing.T, s string) linear {
	t.Helper()
	n, err := strconv.ParseUint(s[1:], 16, 32)
	if err != nil || len(s) != 7 || s[0] != '#' {
		t.Fatalf("colour %q", s)
	}
	var c linear
	for i := range c {
		v := float64(n>>(16-8*i)&255) / 255
		if v <= 0.04045 {
			c[i] = v / 12.92
		} else {
			c[i] = math.Pow((v+0.055)/1.055, 2.4)
		}
	}
	return c
}

// contrast is that of WCAG 2: from 1 to 21.
func contrast(a, b linear) float64 {
	lum := func(c linear) float64 { return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2] }
	hi, lo := max(lum(a), lum(b)), min(lum(a), lum(b))
	return (hi + 0.05) / (lo + 0.05)
}

func (c linear) times(m [3]linear) linear {
	var out linear
	for i, row := range m {
		out[i] = row[0]*c[0] + row[1]*c[1] + row[2]*c[2]
	}
	return out
}

// difference is the distance of two colours in Oklab (Ottosson, 2020): black and white are 1 apart.
func difference(a, b linear) float64 {
	lab := func(c linear) linear {
		c = c.times([3]linear{
			{0.4122214708, 0.5363325363, 0.0514459929},
			{0.2119034982, 0.6806995451, 0.1073969566},
			{0.0883024619, 0.2817188376, 0.6299787005},
		})
		for i := range c {
			c[i] = math.Cbrt(c[i])
		}
		return c.times([3]linear{
			{0.2104542553, 0.7936177850, -0.0040720468},
			{1.9779984951, -2.4285922050, 0.4505937099},
			{0.0259040371, 0.7827717662, -0.8086757660},
		})
	}
	p, q := lab(a), lab(b)
	return math.Hypot(math.Hypot(p[0]-q[0], p[1]-q[1]), p[2]-q[2])
}

// readers see colours as they are, or as those who lack one kind of cones: the matrices of Machado, Oliveira and
// Fernandes (2009) for a severity of 1.
var readers = map[string][3]linear{
	"most readers":    {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"with protanopia": {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"with deutanopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	"with tritanopia": {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
}

func TestColoursAreToldApart(t *testing.T) {
	series, texts, ground := chart.Colours()
	for _, scheme := range []struct {
		name string
		of   func(chart.Hue) string
	}{
		{"light", func(h chart.Hue) string { return h.Light }},
		{"dark", func(h chart.Hue) string { return h.Dark }},
	} {
		on := light(t, scheme.of(ground))
		for name, h := range texts {
			if c := contrast(light(t, scheme.of(h)), on); c < 4.5 {
				t.Errorf("%s: %s has a contrast of %.2f; text needs 4.5", scheme.name, name, c)
			}
		}
		for i, h := range series {
			a := light(t, scheme.of(h))
			if c := contrast(a, on); c < 3 {
				t.Errorf("%s: hue %d has a contrast of %.2f; a line needs 3", scheme.name, i, c)
			}
			for j, h := range series[:i] {
				for name, m := range readers {
					if d := difference(a.times(m), light(t, scheme.of(h)).times(m)); d < 0.1 {
						t.Errorf("%s, %s: hues %d and %d differ by %.3f", scheme.name, name, j, i, d)
					}
				}
			}
		}
	}
}
