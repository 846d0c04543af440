// Package launch makes a program send its requests through a forward proxy, without changing the
// program. The command `paceline exec` uses the package.
//
// The command `paceline exec` starts a keeper, which is the proxy of such programs, or joins one
// that runs. Then the command's process becomes the program, by exec(2): so it has the program's
// exit code, signals, terminal and process id. The keeper is no child of the program, and watches
// whether the program still runs. If a keeper was killed, the next run removes the files that the
// keeper left.
//
// # Files
//
//	start.go         Start starts a keeper, Become becomes the program; what a keeper reports
//	inherited.go     files that only the program inherits
//	folder.go        the run's files, and those that a killed keeper left
//	environment.go   the environment of the program
//	captured.go      a program in namespaces of its own
//	settings.go      settings of curl and git that take precedence over the environment
//	rc_files.go      files for programs that ignore the variables: wget, apt, PHP, Java, Node
//	truststore.go    certificates in Java's form
//	process_end*.go  finds out when a process ends
package launch
