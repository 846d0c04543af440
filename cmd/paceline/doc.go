// Command paceline sends requests at the highest rate that a server's limits allow. If the command
// knows the limits, the server rejects no request for a limit. No request is lost: each ends with a
// result or as a dead letter. The verb try shows this: it sends requests to a strict server that it
// starts itself, and counts what that server rejected.
//
// The command has verbs, such as run and proxy. The names of most files begin with the name of
// their verb. Package internal/app/cli has the common parts of a command line, such as exit codes.
//
// # Files
//
//	main.go              the list of verbs
//	try.go               try: run against a server of its own
//	run*.go              run: flags, input, output, plan and report
//	by_upstream.go       run: --upstream, with the settings of an upstream in a file of the proxy
//	enqueue.go           enqueue: puts the requests of a file into a backlog
//	work.go              work: sends the requests of a backlog
//	backlog*.go          backlog: shows what is in a store; --backlog of run and others
//	foreign_input.go     run: inputs in forms that are not paceline's own
//	run_progress.go      run: the live line
//	page_flags.go        run: --next, by which the address of the next page is found
//	watch_page.go        run: the page on which a run can be watched
//	success.go           run: --success, a jq expression
//	poll_flags.go        run: --every, requests that are asked again and again
//	via_flags.go         run: --via batch
//	token_flags.go       run: where {token} comes from
//	prompt_flags.go      run: a prompt of each row
//	meter_flags.go       run: the tokens that a server counts
//	signals.go           run: what the first Ctrl-C does, and the second
//	proxy*.go            proxy: flags, files, check, forward proxy and metrics
//	targets_in_words.go  proxy check: what targets an upstream has, in words
//	takeover.go          proxy: the next process takes over
//	forward_ca.go        proxy ca: the certificate of a forward proxy
//	minute_flags.go      run and proxy: --rpm and the flags like it
//	permit*.go           permit: a command that waits for its turn
//	exec*.go             exec: flags, and the proxy of a run
//	daemon*.go           daemon: the process that runs share; status and stop
//	serve*.go            serve: servers to test clients against
//	share*.go            share: limits that processes share through a store
//	explain*.go          explain: the meaning of an answer
//	models.go            models: the models that paceline knows, and their prices
//	provider_names.go    names for --provider and --preset
//	chart.go             chart: a page about a run
//	flag_values.go       values of flags, for completions
//	byte_size.go         flags for numbers of bytes
//	part_flag.go         flags for a part of a whole: 75%
//	notify_*.go          SIGUSR1, by system
//	help_flags.go        groups of flags, for help
package main
