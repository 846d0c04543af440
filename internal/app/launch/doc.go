// Package launch makes a program send its requests through a forward proxy, without changing the
// program. The command `paceline exec` uses the package.
//
// The command `paceline exec` starts a keeper, or joins one that runs. A keeper is the forward
// proxy through which programs of `exec` send. Then the command's process becomes the program, by
// exec(2): so it has the program's exit code, signals, terminal and process id. The keeper is no
// child of the program, and watches whether the program still runs. If a keeper was killed, the
// next run removes the files that the keeper left.
//
// # Files
//
//	start.go         starts the keeper's process, then this process becomes the program
//	inherited.go     open files that a keeper must not hold, so that pipes end
//	folder.go        the temporary files of a run; those that a killed keeper left
//	environment.go   the variables that a program gets; NO_PROXY and others taken out
//	captured.go      a program in namespaces of its own: its hosts file, its command
//	settings.go      a setting in .curlrc or git's files that leads past the proxy
//	rc_files.go      wget, apt, PHP, Java: files and options for proxy and certificates
//	node_hook.cjs    Node: leads connections to named hosts to the proxy
//	truststore.go    certificates in Java's form, JKS
//	process_end*.go  finds out when a process ends
package launch
