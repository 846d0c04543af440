// Package launch makes a program send through a forward proxy, without changing the program. It is
// the work of `paceline exec`.
//
// The command starts or joins a keeper, which is the proxy of runs, and then becomes the program: its
// exit code, signals, terminal and process id are the program's. The keeper is no child of the
// program. It watches the program. What a killed keeper leaves, the next run removes.
//
// # Files
//
//	start.go         Start a keeper, Become the program; what a keeper reports
//	inherited.go     files that only the program inherits
//	folder.go        the run's files, and those that a killed keeper left
//	environment.go   the environment of the program
//	captured.go      a program in namespaces of its own
//	settings.go      settings of curl and git that count for more than the environment
//	rc_files.go      files for programs that heed no variable: wget, apt, PHP, Java, Node
//	truststore.go    certificates in Java's form
//	process_end*.go  the end of a process
package launch
