// Package bench measures clients in virtual time, against simulated servers. Each client is one row
// of a table of results. Some clients send orders to a trading exchange, and some send prompts to
// language models.
//
// # Files
//
//	exchange_config.go    Exchange: its limit, bans and latency, and its requests' time to live
//	rows.go               Row: the clients that are compared, and the load of each
//	virtual.go            runs the rows in the simulator, over seeds; the ceiling of each row
//	row_result.go         Report and Result: rates, delays, quantiles; the fields of -o json
//	result_table.go       the tables of `bench exchange` for people: columns, blocks, widths
//	llm_policies.go       `bench llm`: policies under limits on requests and tokens, and their table
//	llm_produced_rows.go  `bench llm`: a server that counts output tokens as it produces them
//	proof_run.go          `proof`: kinds of servers over hostile paths, attacks and planted faults
package bench
