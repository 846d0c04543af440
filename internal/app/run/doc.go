// Package run sends the requests of a file or a backlog. With the packages in its folders, it
// contains all of `paceline run` but the flags and the terminal. These are its source files:
//
//	run.go          the four steps: New, Open, Send, Close; the errors of each; answers that come another way,
//	                such as by batches of the provider
//	config.go       Config: the options of a run, and which contradict each other; a Backlog as
//	                input; how many attempts may be in flight
//	earlier.go      reads the files of earlier runs; a journal that lost its end
//	check_input.go  checks the input before and during a run: wrong lines, ids twice, foreign
//	                hosts
//	feed.go         hands the input's requests to the Pools; --unanswered hold after a restart; input
//	                that became shorter or longer; --ttl: when the time of a request begins
//	snapshots.go    snapshots for metrics and the page; how often waits are looked at; machine's
//	                sleep
//	plan.go         --dry-run: what a run would send and cost, and how long it takes
//	progress.go     figures of progress: done, rate, percentage; why requests wait; the lines at the end
//	                about dead letters
//	eta.go          the ETA: how long the rest takes, by limits and by answers
//
//	attempt.go       one attempt: room, money, {token} and journal before it is written; then sends
//	                 it; after a 401 another token
//	after.go         the steps after an answer, in order; what the journal has of it; values of
//	                 --select
//	ended.go         writes results together, or singly on a full disk; fields of a result;
//	                 journal
//	judge_answer.go  what an answer proves: served, again, dead, key banned; --success, --partly;
//	                 --unanswered hold within a run; failures in words
//	cost.go          what requests cost, by charges, answers and prices; the budget, which ends a run
//	giving_up.go     when a run ends since a host is wrong or down, or all is denied, unpaid or refused; notices of
//	                 that
//	next_pages.go    requests for the next page of an answer; pages after a restart
//
//	organizations.go  keys that share their limits: --organization, or as answers name it
//	lessons.go        wrong limits: what earlier runs learned, and the notices
//	pools.go          makes the Pools, in which sends and pauses of earlier runs still count; the limiter of a key:
//	                  --strangers, --share and its name there, --limit auto
//	groups.go         models and resources with limits of their own; a banned key is banned for
//	                  all
//	knobs.go         paceline ctl: limits, pauses of keys and attempts in flight that a user changes
//	trial.go          a wrong model costs one request: each model's first goes alone; a wrong address
//	                  costs a few
//	course.go         whether a run goes on, and why it ended; --until; how much is read ahead
//	polls.go          --every: rounds of the same requests; an interval that limits do not allow
//
// The packages in the folders of this package can be used without a Run:
//
//	format   the forms of requests and results
//	meter    the tokens of requests to language models, and of their answers
//	output   the files of a run
//	sending  attempts over HTTP, how many are in flight, redirects, next pages, memory and money
//	tally    all that is counted
//	telling  what the user learns on the way
//
// docs/run-input.md describes the formats of the input, and docs/results.md those of the results.
package run
