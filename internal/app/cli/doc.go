// Package cli contains the common parts of the command lines of paceline and paceline-lab. They are
// exit codes, values of flags from environment variables, help that fits a screen, errors with a
// suggestion, completions for shells, the version and progress. The flag --init, which writes an
// example file, is one of them, too.
//
// The main function of a program makes a Program of its verbs (such as run and proxy), and calls
// Execute.
//
// # Files
//
//	program.go      Program, Verb and Execute: runs a command line, prints its error
//	exit.go         exit codes, and errors that have one
//	help.go         the text of --help and --help-all
//	help_groups.go  flags in groups, in the text of a help
//	suggest.go      errors for unknown commands and flags, with the one that was meant
//	complete.go     completions of the values of flags, for shells
//	initial.go      --init, which prints an example file, and --schema
//	manual.go       man pages, for a release
//	output.go       -o json; control characters are made visible, so that no terminal obeys them
//	overhear.go     passes on lines that other packages write to Go's package log
//	file_names.go   errors about missing files and folders
//	process_*.go    processor time and process groups, by system
//	computing.go    the progress of verbs that compute for long
//	fill_level.go   a flag for what a quota holds at the start
//	ballast.go      memory that is never written, so that the collector runs less often
//	version.go      --version and version
package cli
