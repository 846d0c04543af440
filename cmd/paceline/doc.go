// Command paceline sends requests at the highest rate that a server's limits allow. If the command
// is given the limits that the server enforces, and nobody else uses them, the server rejects no
// request for a limit. No request of a run is lost: unless the run is broken off, each ends with a
// result or as a dead letter. The verb try shows this: it sends requests to a strict server that it
// starts itself, and counts what that server rejected.
//
// The command has verbs, such as run and proxy. The name of a file of this package mostly begins
// with the name of its verb. Package internal/app/cli contains the parts of a command line that all
// verbs need, such as exit codes.
//
// # Files
//
//	main.go               the list of verbs
//	try.go                try: run against a server of its own
//	run.go                run: the verb from start to end, also after Ctrl-C; its warnings; flags
//	                      that the input needs
//	run_flags.go          run: its flags, and which of them exclude each other; --until; the
//	                      run.Config that they make
//	flag_file.go          run: --flags, a file of flags that a team shares; --init, --schema
//	run_progress.go       run: the progress line: parts, bar, the reason to wait, recent failures
//	tui.go                run: --tui: the keys of the whole screen; as paceline ctl, not on Windows
//	tui_view.go           run: --tui: what the whole screen shows, as lines of a width
//	run_console.go        run: -q, -v and --log-level: what is printed on standard error
//	run_report.go         run: the summary at the end, "the same command again", the exit code;
//	                      --report
//	run_results.go        run: --select, --out-dir, --ordered, --out-format: where answers go, in
//	                      which form
//	run_sharing.go        run: --strangers, --sharers, --use: a limit that others use, too, or a
//	                      part of it
//	run_llm.go            run: --preset, --count, --format, --per-second, prices of tokens, batch
//	                      files
//	dry_run.go            run: what --dry-run prints, and the text before a batch is sent
//	by_upstream.go        run: --upstream: settings from a file of the proxy; flags that it
//	                      excludes
//	foreign_input.go      run: --input-format, --url, --body, --id: lists, tables, arrays, curl
//	                      commands and HARs as input
//	watch_page.go         run: --page: its address, and the page on which a run can be watched
//	success.go            run: --success, a jq expression that a served answer must meet
//	poll_flags.go         run: --every, --rounds: requests that are asked again and again
//	openapi_flags.go      run: --openapi, by which rows become requests of an operation of an API
//	page_flags.go         run: --next, by which the address of the next page is found
//	batch_file.go         run: --batch-file, rows of prompts as a batch file
//	via_flags.go          run: --via batch: flags that it excludes, and what it prints
//	token_flags.go        run: where {token} comes from: --auth-command, --oauth-token-url
//	prompt_flags.go       run: --prompt-column, a prompt of each row
//	meter_flags.go        run: tokens of requests that are no batch; longer timeouts for language
//	                      models
//	signals.go            run and others: what the first Ctrl-C or SIGTERM does, and the second
//	backlog.go            backlog: ls, its table of counts; pause, cancel and other verbs on a
//	                      backlog
//	backlog_results.go    backlog results: the results, in the order of the input
//	backlog_*.go          run, enqueue and work: --backlog, the address of the store, the name
//	enqueue.go            enqueue: puts the requests of a file into a backlog
//	work.go               work: sends the requests of a backlog
//	proxy.go              proxy: the verb, from its start to the signal that ends it
//	proxy_flags.go        proxy: flags, as the configuration of one upstream
//	proxy_file.go         proxy: --config FILE, and SIGHUP, which reads the file again
//	proxy_check.go        proxy check: what a configuration means, in words; --route
//	proxy_metrics.go      proxy: --metrics, its listener and whether labels have names
//	proxy_minute.go       proxy: --rpm and --preset as limits of the configuration
//	proxy_forward.go      proxy: --forward, and the environment that it prints
//	proxy_init.go         proxy: --init, an example configuration; --schema
//	targets_in_words.go   proxy check: what targets an upstream has, in words
//	takeover.go           proxy: --takeover, --handover: the next process takes the sockets over
//	forward_ca.go         proxy ca: the certificate of a forward proxy
//	minute_flags.go       run and proxy: --rpm, --tpm, --itpm, --otpm, --limit-model, --rule
//	permit*.go            permit: waits for its turn, then runs a command; its exit code
//	exec.go               exec: flags, and those that it refuses; the server by --preset; starts
//	                      the program
//	exec_join.go          exec: joins the daemon or starts it; which runs have a proxy alone
//	exec_awaited.go       exec: --summary, which waits for the figures of the end
//	exec_keeper.go        exec: the proxy of one run, in a process of its own; figures at its end
//	daemon.go             daemon: the verb; what status and stop print
//	daemon_knobs.go     paceline ctl at a daemon: limits with names, and those of paceline exec
//	daemon_limits.go      daemon: --limit, --client, --state, --listen and other flags of permits
//	daemon_join.go        daemon: a second `paceline daemon`, whose limits the first one takes
//	daemon_runs.go        daemon: runs of exec that join it, and leave
//	ctl.go                ctl: finds the programs that go on, and changes one of them
//	ctl_run.go            run: how paceline ctl changes it
//	ctl_proxy.go          proxy, daemon: how paceline ctl changes them
//	page_knobs.go         the forms on the page that change a program; its helm
//	ctl_other.go          ctl: systems without its socket
//	serve.go              serve: common flags: latency, address, log; the end by a signal
//	serve_clock.go        serve: --clock, the virtual clock of clients in any language
//	serve_try.go          serve: the greeting at the start, with commands to try the server
//	serve_*.go            serve: flags and report of a server: exchange, gcra, llm, a provider
//	share.go              share: ls, show, new, forget: the limits in a store
//	share_flags.go        run, proxy: what --share does not go with, such as --limit none
//	share_store_flags.go  --share, --share-name, --share-fallback, --share-weight, --share-least
//	share_open_store.go   opens a store of limits by its address: SQLite, PostgreSQL, Redis
//	explain.go            explain: the meaning of an answer, and its flags
//	explain_who.go        explain: whose answer it is probably
//	explain_route.go      explain: --route, what a request costs and where it counts
//	explain_table.go      explain: --providers, the table of them; --preset, published limits
//	explain_words.go      explain: the answer in sentences (advice: provider/classify); --json
//	models.go             models: the models that paceline knows, and their prices
//	provider_names.go     names for --provider and --preset; the near names of a wrong one
//	chart.go              chart: an HTML page or picture of a run or a server's log
//	flag_values.go        values of flags that a shell completes
//	byte_size.go          flags for numbers of bytes: 64KiB
//	part_flag.go          flags for a part of a whole: 75%
//	notify_*.go           proxy: kill -USR1, by system: banned keys are tried again
//	help_flags.go         --help: under which heading a flag stands
package main
