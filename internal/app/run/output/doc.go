// Package output writes the files of a run: results and dead letters, bodies, rows or results in order, and the
// journal beside them.
//
// A Store opens these files. It gives its caller what earlier runs wrote, and syncs results before
// the journal. It knows requests by their ids alone. It passes notices for the user to the function
// that Open gets, and prints nothing itself.
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
