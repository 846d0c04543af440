// Command paceline sends requests at the highest rate that a server's limits allow. If the command
// knows the limits, and nobody else uses them, the server rejects no request for a limit. The verb
// run loses no request: each ends with a result, or as a dead letter (the record of a request that
// failed for good). The verb try shows both: it starts a strict server, sends requests to this
// server, and counts the requests that the server rejected.
//
// The command has verbs, such as run and proxy. The name of a file of this package mostly begins
// with the name of its verb. Package internal/app/cli contains the parts of a command line that all
// verbs need, such as exit codes.
//
// # Files
//
//	main.go              the list of verbs
//	try.go               try: run against a server of its own
//	run.go               run: the verb; its warnings, and what a batch will cost
//	run_flags.go         run: its flags, and the run.Config that they make
//	run_progress.go      run: the progress line: parts, bar, the reason to wait, recent failures
//	run_console.go       run: -q, -v and --log-level: what is printed on standard error
//	run_report.go        run: the summary at the end, the exit code, and the page with charts
//	run_results.go       run: --select, --out-dir and the like: where answers go, in which form
//	run_sharing.go       run: --strangers, --share, --use: limits that others use, too
//	run_llm.go           run: limits of tokens, and batch files of language models
//	by_upstream.go       run: --upstream, with the settings of an upstream in a file of the proxy
//	foreign_input.go     run: lists of URLs, tables, arrays and curl commands as input
//	watch_page.go        run: the page on which a run can be watched
//	success.go           run: --success, a jq expression
//	poll_flags.go        run: --every, requests that are asked again and again
//	page_flags.go        run: --next, by which the address of the next page is found
//	via_flags.go         run: --via batch
//	token_flags.go       run: where {token} comes from: --auth-command, --oauth-token-url
//	prompt_flags.go      run: --prompt-column, a prompt of each row
//	meter_flags.go       run: the tokens that a server counts
//	signals.go           run: what the first Ctrl-C does, and the second
//	backlog.go           backlog: ls, its table of counts; pause, cancel and other verbs on a backlog
//	backlog_results.go   backlog results: the results, in the order of the input
//	backlog_*.go         run, enqueue and work: --backlog, the address of the store, the name
//	enqueue.go           enqueue: puts the requests of a file into a backlog
//	work.go              work: sends the requests of a backlog
//	proxy.go             proxy: the verb, from its start to the signal that ends it
//	proxy_flags.go       proxy: flags, as the configuration of one upstream
//	proxy_file.go        proxy: --config FILE, and SIGHUP, which reads the file again
//	proxy_check.go       proxy check: what a configuration file means; --route
//	proxy_*.go           proxy: the forward proxy, --init, metrics, limits by the minute
//	targets_in_words.go  proxy check: what targets an upstream has, in words
//	takeover.go          proxy: the next process takes over
//	forward_ca.go        proxy ca: the certificate of a forward proxy
//	minute_flags.go      run and proxy: --rpm and the flags like it
//	permit*.go           permit: waits for its turn, then runs a command; its exit code
//	exec*.go             exec: flags; the proxy of a run, or the daemon that it joins
//	daemon.go            daemon: the verb; status and stop
//	daemon_*.go          daemon: its limits and state, joining one that runs, the runs of exec in it
//	serve*.go            serve: servers to test clients against, a file a server
//	share.go             share: ls, show, new, forget: the limits in a store
//	share_*.go           flags of limits that processes share; stores by their addresses
//	explain.go           explain: the meaning of an answer, and its flags
//	explain_*.go         explain: the probable provider, costs by --route, tables, words
//	models.go            models: the models that paceline knows, and their prices
//	provider_names.go    names for --provider and --preset
//	chart.go             chart: a page about a run
//	flag_values.go       values of flags, for completions
//	byte_size.go         flags for numbers of bytes
//	part_flag.go         flags for a part of a whole: 75%
//	notify_*.go          SIGUSR1, by system
//	help_flags.go        groups of flags, for --help
package main
