// Package report draws the results of a run, or the log of a test server (`paceline serve`), as one
// HTML file. To show the file, a browser needs no network, no font and no other file. The colours
// are light or dark, as the reader's browser prefers. If scripts are off in the browser, it still
// shows the summary, the figures and the tables, but no charts.
//
//	report.go      Page, Figure, Chart: what a page shows, and which of them are mistakes
//	crowd.go       many lines in one chart: the median, and a band from the 5th to the 95th percentile
//	html_file.go   writes the file whole: after an error an earlier file is as it was
//	server_log.go  reads results of a run, and logs of `paceline serve`
//	charts.go      which charts and figures a log has: rates, refusals, waits, limits
//	html.go        the HTML of a page: tables, bars; colours and lines are in page.js and page.css
//
// The same Page (the data that a report shows) always gives the same bytes of HTML. Texts of a Page
// may come from a stranger, so they are escaped, and nothing in them becomes HTML.
package report
