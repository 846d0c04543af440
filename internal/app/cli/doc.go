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
//	program.go      runs a command line; flags from PACELINE_… variables; prints the error
//	exit.go         exit codes, and which error has which
//	help.go         the text of --help and --help-all, and what fits a screen
//	help_groups.go  flags in groups, in the text of a help
//	suggest.go      errors for unknown commands and flags, with the one that was meant
//	complete.go     completions of flags' values, for shells
//	initial.go      --init, --schema: an example file, the JSON schema of a file
//	manual.go       man pages, for a release
//	output.go       -o json; control characters made visible; words quoted for a shell
//	overhear.go     passes on lines that other packages write to Go's package log
//	file_names.go   "no such file", with similar names; a missing folder
//	process_*.go    processor time, by system
//	computing.go    progress lines of verbs that compute for long
//	fill_level.go   a flag for what a quota holds at the start
//	ballast.go      memory that is never written, so that the collector runs less often
//	version.go      --version and version
package cli
