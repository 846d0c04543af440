// Package ratetest provides rate-limited servers for tests of clients, as net/http/httptest
// provides servers. Such a server enforces a limit: it refuses the requests that exceed the limit.
// If so configured, the server adds latency before this check (the way to the server) and after it
// (the way back), and logs each request that it checks (LogTo). From its report or log, a test can
// see how the client behaved, and how many requests the best possible client would have sent.
//
// Package ratetest itself provides two servers: an exchange (a market with orders and nonces), and
// a quota with many users. Package ratetest/llm provides servers of language models, and
// ratetest/service servers with the APIs of other providers. For clients in other languages, the
// command `paceline serve` runs the same servers. Package lab/sim simulates clients and servers
// without HTTP, in virtual time, which is much faster.
//
// # Files
//
//	exchange_server.go  Exchange: its answers, log and report; when it refuses or bans: internal/rule/exchange_rule.go
//	gcra.go             GCRA: one quota for all clients, with or without remainders
//	in_memory.go        a server without a socket, for tests
package ratetest
