// Package yamlfile reads files of YAML strictly, by tables. A table is a Go value (a slice of
// Field) with a row for each key of a mapping in the file. The row states how to read the value of
// the key. The package stores the value in the Go field of the same name, or in the field that the
// row names, by reflection. It makes a JSON schema from the same table. An unknown key, a key that
// is there twice, and a value of another form are errors. Each Error has its place in the file, and
// what was expected there. The package collects all errors of a file, not just the first.
//
// Package yamlfile only reads text: the caller opens the file. The owner of the table checks
// whether the values of a file fit together.
//
//	yamlfile.go  Reader: parses the file; collects its errors
//	mappings.go  keys that are unknown, missing or there twice
//	scalars.go   values: texts, durations, numbers, rates, choices; "expected …"
//	schema.go    the JSON schema of a table
//	locate.go    the line and column of a Go field in the file
//	changed_keys.go
//	             the keys whose values differ in two files
package yamlfile
