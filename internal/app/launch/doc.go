// Package launch makes a program send its requests through a forward proxy, without changing the
// program. The command `paceline exec` uses the package.
//
// The command `paceline exec` starts a keeper, which is the proxy of such programs, or joins a
// keeper that runs. Then the process of the command becomes the program, by exec(2). So the program
// has the terminal and the process id of the command, signals reach the program directly, and its
// exit code is that of the command. The keeper is not a child of the program, and watches whether
// the program still runs. If a keeper was killed, the next `paceline exec` removes the files that
// this keeper left.
//
// # Files
//
//	start.go         Start: the keeper's process; Become: this process becomes the program
//	inherited.go     open files that this process inherited: they are kept for the program
//	folder.go        the run's files, and those that a killed keeper left
//	environment.go   the variables that lead the program to the keeper, and the files that they name
//	captured.go      a program in namespaces of its own
//	settings.go      a setting of curl or git that keeps a host from the proxy
//	rc_files.go      files for programs that ignore the variables: wget, apt, PHP, Java, Node
//	truststore.go    certificates in Java's form, JKS
//	process_end*.go  finds out when a process ends
package launch
