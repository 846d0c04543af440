// Package chart writes a page of charts as a file. The ending of the file's name decides the form:
// .svg or .png, drawn by gonum/plot, or .html, written by package report.
//
// The same page of charts always gives the same bytes. The functions of package chart are safe for
// concurrent use.
//
// # Files
//
//	chart.go   writes a page as .html, .png or .svg
//	draw.go    a page as a picture: panels, texts, legends
//	series.go  lines and bars: colours, ticks, marks
package chart
