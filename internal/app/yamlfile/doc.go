// Package yamlfile reads files of YAML strictly, by tables. A table is a Go value with a row for
// each key of a mapping in the file. The row states how to read the value of the key. The value is
// stored in the Go field of the same name, by reflection. A JSON schema is made from the same
// table. An unknown key, a key that is there twice, and a value of another form are errors. Each
// Error has its place and what was expected. All errors of a file are collected, not just the
// first.
//
// Package yamlfile only reads text: the caller opens the file. The owner of the table checks
// whether the values of a file fit together.
//
//	yamlfile.go  Reader: parses the file; collects its errors
//	mappings.go  Field, a row of a table: keys that are unknown, missing or there twice
//	scalars.go   values: texts, durations, numbers, rates, choices
//	schema.go    the JSON schema of a table
//	locate.go    the line and column of a Go field in the file
package yamlfile
