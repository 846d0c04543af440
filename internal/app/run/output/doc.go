// Package output writes the files of a run. These are the results and dead letters, the bodies of
// answers, the results as rows or in the order of the input, and the journal. A dead letter is the
// record of a request that failed for good. The journal is the file in which the run records its
// sends.
//
// A Store opens the files of a run, and gives its caller what earlier runs wrote. It syncs results
// before the journal, so that after a power cut no answer is in the journal whose result is lost.
// The Store knows requests by their ids alone. It passes notices for the user to the function that
// Open gets, and prints nothing itself.
//
//	output_config.go  the files of a run by their names
//	results_store.go  results and dead letters, those of earlier runs, and when they are synced
//	rows_view.go      results as rows or in order
//	selection.go      Shape: fields of answers as rows
//	select_list.go    the columns of a selection
//	order.go          writes results in the order of the input
//	bodies.go         a file for each answer
//	lost_end.go       finds out whether results and journal have both lost their ends, as after a power cut
//	distinct.go       checks that no two files of a run are the same
//	dead_beside.go    the name of the file of dead letters
package output
