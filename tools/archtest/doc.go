// Package archtest is a set of tests that check this module's source for rules that the compiler
// does not know. A package imports only what the table in table_test.go allows it. No import
// crosses the borders of library, program and laboratory (the folder lab). The packages that are
// marked Core in the table read no clock and start no goroutine. Functions and folders keep to a
// size, and no file has text that should not be published. Most names that the library exports
// occur in an Example. To allow a package a further import, change the table, and give the reason
// in ARCHITECTURE.md.
//
// Package archtest reads every Go file of the module, whatever its build tags. The files of tests
// have to obey only two of the rules: the borders, and the rule about text that should not be
// published.
//
// # Files
//
//	archtest_test.go    runs the checks on this module; and on planted faults
//	table_test.go       what each package may import: a row for each
//	sources_test.go     imports against the table; clocks and goroutines; text that must not be
//	                    published
//	border_test.go      imports across library, program and laboratory
//	alone_test.go       which packages of users need no other module
//	size_test.go        lengths of functions, files in a folder, columns, shared names of files
//	tables_test.go      tables of files in doc.go: files missing, files that are gone
//	calls_up_test.go    calls that go up in a table of files
//	names_test.go       exported names with a word that the glossary has retired
//	words_test.go       tests of names_test.go: this module, and planted names
//	sentences_test.go   sentences of more than 30 words
//	pages_test.go       pages: files that ARCHITECTURE.md names, decisions, long forms of tests
//	examples_test.go    how many exported names an Example or page shows
//	shown_test.go       which names an Example or page shows
//	assertions_test.go  assertions on interfaces of package limit, in place of limit.Ask
//	logkeys_test.go     keys of log lines: snake_case
//	keys_test.go        how many lines decide about keys
//	sequential_test.go  packages that start nothing, and are tested without the race detector
package archtest
