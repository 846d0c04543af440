package web_test

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/web"
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

// readers see colours as they are, or as those who lack one kind of cones: the matrices of Machado,
// Oliveira and Fernandes (2009) for a severity of 1.
var readers = map[string][3]linear{
	"most readers": {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"with protanopia": {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216},
		{-0.003882, -0.048116, 1.051998}},
	"with deutanopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413},
		{-0.011820, 0.042940, 0.968881}},
	"with tritanopia": {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602},
		{0.004733, 0.691367, 0.303900}},
}

// Lines of all colours are told apart on both grounds, by any reader.
func TestColoursAreToldApart(t *testing.T) {
	both := strings.SplitN(string(web.File(web.Style)), "prefers-color-scheme: dark", 2)
	if len(both) != 2 {
		t.Fatal("the style has no dark scheme")
	}
	for i, scheme := range []string{"light", "dark"} {
		colours := map[string]linear{}
		for _, m := range regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6});`).FindAllStringSubmatch(both[i], -1) {
			colours[m[1]] = light(t, m[2])
		}
		on := colours["card"]
		for _, name := range []string{"ink", "muted"} {
			if c := contrast(colours[name], on); c < 4.5 {
				t.Errorf("%s: %s has a contrast of %.2f; text needs 4.5", scheme, name, c)
			}
		}
		hues := []string{"blue", "orange", "green", "pink", "violet", "brown"}
		for k, hue := range hues {
			if c := contrast(colours["line-"+hue], on); c < 3 {
				t.Errorf("%s: %s has a contrast of %.2f; a line needs 3", scheme, hue, c)
			}
			for _, other := range hues[:k] {
				for name, m := range readers {
					if d := difference(colours["line-"+hue].times(m), colours["line-"+other].times(m)); d < 0.1 {
						t.Errorf("%s, %s: %s and %s differ by %.3f", scheme, name, hue, other, d)
					}
				}
			}
		}
	}
}
