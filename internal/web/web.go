// Package web embeds the files that two pages share: the live page of the library (package
// dashboard), and the report of the program (package report). The files are the style, the script
// that draws charts, and uPlot 1.6.32, unchanged from npm, with its licence. A program that has
// both pages contains the files only once.
package web

import "embed"

//go:embed chart.js page.css uplot
var files embed.FS

// Names of the files.
const (
	Style      = "page.css"
	Charts     = "chart.js" // needs UPlot before it
	UPlot      = "uplot/uPlot.iife.min.js"
	UPlotStyle = "uplot/uPlot.min.css"
	Licence    = "uplot/LICENSE" // of uPlot
)

// File returns the content of a file. It panics if name is none of the Names of this package.
func File(name string) []byte {
	data, err := files.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return data
}
