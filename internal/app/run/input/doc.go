// Package input reads requests in forms that users often have already: lists of URLs, tables, JSON,
// curl commands, network logs of browsers.
//
// Recognize finds the form of an input by its beginning and the name of its file. If the input has
// a form that is not supported, such as YAML, the error names that form and what is expected. For
// some of these forms the error also has a command that converts the input. A Reader makes an Item
// of each line, row, element or command. A Maker fills the columns of an Item into templates, for
// example of a URL. Each value is escaped for its place in the template. If a value itself looks
// like a template, such as {name}, it is not replaced.
//
// A Reader and a Maker do not check whether a request can be sent. Package format does so, with the
// function ParseURL of this package. Package input owns no clock and opens no file.
//
// A line of an input counts as JSON if package encoding/json accepts the line. The function
// ValidJSON gives the same answer, faster. A JSONReader also finds the place (line and column) of
// each part of the line, which encoding/json does not report.
//
//	input.go        the forms of input, by the names of --input-format
//	recognize.go    finds the form of an input by its first line and its file's name
//	decode.go       input in gzip or UTF-16, or with a byte order mark
//	request_url.go  what is wrong with a URL: spaces, port, host, no scheme
//	plain_url.go    a faster look at URLs that need no parser
//	list.go         lists of URLs and other lines; blank lines and # comments
//	table.go        CSV and TSV as input: the header line, quotes, separators
//	json.go         JSON, as lines and as an array
//	shell.go        splits curl commands into words, as a shell does
//	curl.go         options of a curl command; those that are refused
//	openapi.go      a description of an API: its operations, references, servers
//	operation.go    fills a row into an operation of an API: parameters by the names of columns
//	har.go          requests of a HAR: what is left out, a body that is missing
//	row.go          the columns of a row: {row.NAME}, a name that is missing, numbers and dates
//	template.go     {NAME} in --url, --body, --id: how a value is escaped; a body's Content-Type
//	make.go         fills a row into all templates of a request
//	line_reader.go  lines of bounded length, and an error for a longer one
//	json_reader.go  lines of JSON, and the column of a mistake in one
//	valid_json.go   whether a text is JSON
package input
