// Package output writes the files of a run. These are the results and dead letters, the bodies of
// answers, the results as rows or in the order of the input, and the journal. A dead letter is the
// record of a request that failed for good. The journal is the file in which the run records its
// sends.
//
// A Store opens the files of a run, and returns to its caller what earlier runs wrote. The Store
// syncs results (waits until they are on the disk) before it syncs the journal. So after a power
// cut, the journal has no answer whose result is lost. The Store identifies requests by their ids.
// It prints nothing itself: it passes notices for the user to a function that its caller gives to
// Open.
//
//	output_config.go  Config: the names of the files of a run
//	results_store.go  opens, syncs and rereads results and dead letters; torn lines; a missing
//	                  folder
//	rows_view.go      results.csv and FILE.rows behind it: results as rows, or in the input's order
//	sqlite_table.go   --out results.db: the results as a table of SQLite, each exactly once
//	parquet_table.go  --out results.parquet: made of the results when the run ends; types of columns
//	table_columns.go  what both tables share: columns and their types, the rows of a result, cells
//	selection.go      --select, compiled: the columns of CSV in their order; quotes of cells,
//	                  line breaks
//	select_list.go    NAME=EXPRESSION,…: the columns of --select, split at commas
//	select_paths.go   which fields an expression reads for sure; what an answer has in their place
//	order.go          --ordered: results in the order of the input; what waits behind a slow
//	                  request
//	bodies.go         --out-dir: a file for each answer; unfinished files; --max-file; its name is by
//	                  internal/app/durable/file_name.go
//	lost_end.go       after a power cut: have results and journal both lost their ends?
//	distinct.go       refuses two outputs that are one file, or that are the input
//	dead_beside.go    the name of the file of dead letters: x.dead.jsonl beside x.jsonl
package output
