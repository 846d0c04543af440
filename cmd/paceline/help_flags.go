package main

import "github.com/paceline-go/paceline/internal/app/cli"

// groupTable is how help groups the flags of commands that have many.
var groupTable = cli.Groups{
	"paceline run": {
		{"What to send", `
			url=URL          where to send, for each line of the input; {row.NAME} is a column
			body=TEXT|@FILE  of each request, {row.NAME} filled in
			header=FIELD     'Name: value' for every request; {key}, {nonce} are filled in
			query=PARAMETER  'name=value' for the query of every request, likewise
			id=TEMPLATE      the id of a row, by which a later run knows it, such as '{row.NAME}'
			curl             the input has lines of curl, as copied from a browser`,
			`next=HOW method=METHOD input-format=FORMAT format=FORMAT base-url=URL
			every rounds=N no-header first=N skip-invalid next-while=POINTER max-pages=N openapi=FILE operation=NAME server=URL
			init schema max-line max-header max-body queue redirects`},
		{"Limits", `
			limit=RATE       the server's limit, per key: 20/s, 500/m, 300/10s; repeatable
			preset=NAME      published limits by name, such as github or openai:tier1`,
			`share=STORE backlog=STORE backlog-name=NAME upstream=FILE charge=CHARGE concurrency share-name=NAME
			share-fallback=wait|split share-weight share-least
			strangers=KIND sharers=N rejects-free latency-max use=PART ramp`},
		{"Keys", `
			key-env=A,B      environment variables with an API key each, for {key}
			auth-command=COMMAND  prints a token; runs again before its end, and after a 401`,
			`organization=KEY=NAME auth-every key-host=HOST ban-status=CODES nonce-unit nonce-gap nonce-status=CODES
			oauth-token-url=URL oauth-client-id-env=NAME oauth-client-secret-env=NAME oauth-scopes=A,B
			oauth-param=NAME=VALUE`},
		{"Results", `
			out=FILE         file for the results; the same command again resumes there
			out-dir=FOLDER   a file for the body of each answer, by its id
			select=FIELDS    the fields to write, as in jq
			retry-dead=CLASSES  send the dead letters of the runs before again`,
			`append out-format=FORMAT ordered max-file success=JQ ok-status=CODES provider=NAME keep-headers=NAMES max-response dead=FILE
			errors=FILE summary=FILE
			unanswered=resend|hold partly=done|again|hold sync=group|always trust-clock recent`},
		{"Retries and deadlines", `
			timeout`,
			`attempts until=WHEN ttl decay answer-time renew max-outage backoff-base backoff-max same-errors=N`},
		{"Language models and money", `
			rpm              most requests per minute (tokens: --tpm, or --itpm and --otpm)
			budget           most money to spend, such as 20USD
			prompt-column=COLUMN  a prompt of each row; --model NAME, --system TEXT|@FILE
			dry-run          print the plan (requests, tokens, money, time) and send nothing`,
			`by=WHEN model=NAME system=TEXT|@FILE json-schema=FILE max-tokens=N via=requests|batch batch-file=FILE enqueued poll
			tpm itpm otpm limit-model=MODEL=LIMITS rule=bucket|rolling per-second count=WHAT estimate=SHARE
			max-output price=USD price-input=USD
			price-output=USD`},
		{"Watching", `
			page=ADDR        a page about the run, at HOST:PORT or a PORT of this machine
			report=FILE      a page with charts, at the end of the run
			flags=FILE       a file of flags that a team shares; --init writes one`,
			`tui quiet verbose progress=auto|TIME|off color=WHEN log-level=LEVEL output=text|json without=FLAGS`},
	},
	"paceline enqueue": {
		{"What to add", `
			backlog=STORE    where the list is: sqlite:FILE, postgres://…
			backlog-name=NAME  name of the list in the store
			url=URL          where to send, for each line of the input; {row.NAME} is a column
			body=TEXT|@FILE  of each request, {row.NAME} filled in
			prompt-column=COLUMN  a prompt of each row; --model NAME, --system TEXT|@FILE
			curl             the input has lines of curl, as copied from a browser`,
			`header=FIELD query=PARAMETER method=METHOD id=TEMPLATE input-format=FORMAT no-header skip-invalid store-secrets
			max-line max-header max-body model=NAME system=TEXT|@FILE json-schema=FILE max-tokens=N format=FORMAT base-url=URL preset=NAME`},
		{"When it goes", `
			priority=N       each step puts the requests a minute before others
			ttl              how long they are of use
			at=WHEN          nothing goes before`, ``},
	},
	"paceline work": {
		{"What to send", `
			backlog=STORE    where the list is: sqlite:FILE, postgres://…
			backlog-name=NAME  name of the list in the store
			until-empty      end when each request has a result
			header=FIELD     'Name: value' for every request; {key} is filled in`,
			`query=PARAMETER redirects`},
		{"Limits", `
			limit=RATE       the server's limit, per key: 20/s, 500/m, 300/10s; repeatable
			preset=NAME      published limits by name, such as github or openai:tier1
			share=STORE      where the limits are (default: beside the backlog)`,
			`rpm tpm itpm otpm limit-model=MODEL=LIMITS count=WHAT estimate=SHARE max-output charge=CHARGE concurrency share-name=NAME share-fallback=wait|split share-weight share-least rejects-free
			latency-max budget=USD price=USD price-input=USD price-output=USD`},
		{"Keys", `
			key-env=A,B      environment variables with an API key each, for {key}
			key-host=HOST    where keys may go (default: the host of --base-url)`,
			`base-url=URL organization=KEY=NAME auth-command=COMMAND auth-every ban-status=CODES oauth-token-url=URL
			oauth-client-id-env=NAME oauth-client-secret-env=NAME oauth-scopes=A,B oauth-param=NAME=VALUE`},
		{"Answers", `
			attempts
			timeout
			success=JQ       what a served answer has, as in jq`,
			`ok-status=CODES provider=NAME keep-headers=NAMES max-response unanswered=resend|hold partly=done|again|hold until=WHEN ttl
			answer-time renew max-outage backoff-base backoff-max max-line max-header max-body`},
		{"Watching", `
			page=ADDR        a page about this process, at HOST:PORT or a PORT of this machine
			quiet
			verbose`,
			`tui summary=FILE progress=auto|TIME|off color=WHEN log-level=LEVEL output=text|json
			per-second rule=bucket|rolling`},
	},
	"paceline proxy": {
		{"Where requests go", `
			to=URL           the server; a path in it is put in front of theirs
			config=FILE      a file with all settings: several servers, clients, keys
			init             write an example of such a file, with comments, to FILE.yaml
			header=FIELD     'Name: value' for every request; {key} is filled in
			key-env=A,B      environment variables with an API key each, for {key}`,
			`schema query=PARAMETER provider=NAME ca-file=FILE forwarded keep-host keep-links connect-timeout
			nonce-unit nonce-gap key-in=PLACE`},
		{"Limits", `
			limit=RATE       the server's limit, per key: 20/s, 500/m, 300/10s; repeatable
			preset=NAME      published limits by name, such as github or openai:tier1
			share=STORE      share the limits by a store: sqlite:FILE, postgres://…, redis://…
			in-flight`,
			`charge=CHARGE share-name=NAME share-fallback=wait|split share-weight share-least state=FILE rpm tpm
			itpm otpm limit-model=MODEL=LIMITS strangers rule=bucket|rolling per-second tokens rejects-free
			latency-max use=PART ramp`},
		{"Waiting", `
			max-wait         longest wait for a turn; if more is expected, 429 at once
			timeout
			grace            waiting requests may go on for so long after a stop`,
			`takeover recent handover=SOCKET final-only attempts max-waiting max-outage max-pause`},
		{"Clients", `
			listen=HOST:PORT address for clients; beyond this machine: --client-key-env or --open
			client-key-env=A,B  environment variables, each with a key that a client sends
			open
			forward=HOST:PORT  a forward proxy: programs reach it by HTTPS_PROXY`,
			`forward-bundle=FILE tunnels=public|none env=sh|docker|json client-header=NAME tls-cert=FILE
			tls-key=FILE max-header max-body max-connections max-frozen header-timeout idle-timeout stall`},
		{"Watching", `
			admin=HOST:PORT  the page, /metrics, /livez and /readyz
			metrics=HOST:PORT  the numbers alone, for other machines
			log=text|json|off  a line per request on standard error`,
			`sent=FILE metrics-names metrics-token-env=NAME log-level=LEVEL`},
	},
	"paceline exec": {
		{"Where requests go", `
			to=URL           the server; requests to its host wait for their turn
			config=FILE      the file of paceline proxy: several servers, each with its limits
			preset=NAME      published limits by name, such as openai:tier1; its host is the provider's
			limit=RATE       the server's limit, per key: 20/s, 500/m, 300/10s; repeatable
			key-env=A,B      environment variables with an API key each, which the program does not get
			header=FIELD     'Name: value' for every request; {key} is filled in`,
			`query=PARAMETER provider=NAME ca-file=FILE connect-timeout share=STORE share-name=NAME
			share-fallback=wait|split share-weight share-least state=FILE charge=CHARGE rpm tpm itpm otpm
			limit-model=MODEL=LIMITS strangers rule=bucket|rolling per-second tokens rejects-free latency-max
			in-flight use ramp max-wait final-only timeout attempts max-outage max-pause max-body nonce-unit
			nonce-gap key-in=PLACE`},
		{"How it is led here", `
			capture          all of its connections, whatever it reads (Linux)`,
			`allow-local`},
		{"Beside other runs", `
			apart            a proxy of this run alone, which knows nothing of other runs`,
			`weight head-start`},
		{"Watching", `
			quiet            no line at the end
			summary=FILE     the figures of the end, as JSON
			print-env        print the variables that are set for a program`,
			`sent=FILE log-level=LEVEL`},
	},
	"paceline daemon": {
		{"Permits", `
			limit=NAME=RATE  a limit that programs wait for, such as orders=50/s; repeatable
			late=SPAN        how long after an unknown end a request may still arrive
			state=FILE       what was granted, for the next daemon; off: none
			share=STORE      share the limits by a store: sqlite:FILE, postgres://…, redis://…`,
			`provider=NAME=PROVIDER client=NAME=WEIGHT head-start=NAME=SPAN schema share-name=NAME
			share-fallback=wait|split share-weight share-least`},
		{"Who reaches it", `
			listen=127.0.0.1:PORT  a port for permits, too
			key-env=NAME     environment variable with the key for that port`, ""},
		{"Watching", "", `log-level=LEVEL`},
	},
	"paceline serve *": {
		{"What it allows", `
			preset=NAME      which of its published limits
			limit
			window
			rpm              most requests in a window
			tpm
			keys             API keys, separated by commas
			nonces
			models=NAMES`,
			`ban-after capacity level input-tpm output-tpm rpd tpd credit count=WHAT rolling per-second
			refused-count`},
		{"What happens to a request", `
			latency=LAW      latency before the check, such as uniform:0-50ms
			clock=CLIENTS    a virtual clock for so many clients
			fault=NAME=P     probabilities of faults, separated by commas: 500=0.01,cut=0.01
			script=FAULTS`,
			`latency-after=LAW first=LAW tokens-per-second cached=SHARE reasoning=SHARE retry-after scale seed`},
		{"Where", `
			addr=HOST:PORT
			log=FILE
			output=FORMAT`, ""},
	},
}
