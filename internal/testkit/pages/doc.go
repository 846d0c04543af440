// Package pages reads README.md, the pages beside it and the pages of docs. It runs the commands
// that these pages tell a reader to type. The tests of each program use the package for the command
// lines of that program.
//
// # Files
//
//	pages.go      reads pages: their blocks, and the comments such as "prints:" beside them
//	commands.go   whether verbs and flags that a page names exist
//	run_block.go  runs a block as it is written, and compares what it prints
package pages
