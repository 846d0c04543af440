// Package report draws the results of a run, or the log of a server, as one HTML file. The file
// needs no network, no font and no other file. Its colours are light or dark, as the reader's
// browser prefers. Where scripts are off, the browser still shows the summary, the figures and the
// tables, but no charts.
//
//	report.go      what such a file shows, and the HTML of it
//	crowd.go       many lines in one chart: the band from the 5th to the 95th percentile, the median, and a few lines
//	html_file.go   writes the file as a whole: if that fails, an earlier file stays as it was
//	server_log.go  reads results, and logs of servers
//	charts.go      what is drawn of a log
//	html.go        writes HTML
//
// The same Page (the data that a report shows) always gives the same bytes of HTML. Texts are
// written as plain text: they may come from a stranger, and nothing in them becomes HTML.
package report
