// Package screen lays out text for people, in columns of a terminal.
//
// A Screen writes to standard error while a command runs for a long time. On a terminal, up to
// three lines at the bottom show the progress. A timer of the Screen rewrites these lines again and
// again. Their text is computed from the present state of the command and the width of the
// terminal. All other text that a Screen writes consists of lines that stay. A Screen is not for
// results: a command writes these to standard output itself.
//
//	screen.go          rewrites the last lines of a terminal, for its width now; lines above stay
//	whole_screen.go    Whole: fills the terminal, and reads keys; what is written meanwhile stands
//	                   there after it
//	coloured_line.go   Line and Part: the width of the progress line, and what a narrow one leaves out
//	progress_words.go  words of progress: percentage, ETA, durations; Counter
//	table.go           columns of a table, cut or wrapped to a width
//	width.go           how many columns a text takes: Chinese, emoji; cuts and pads
package screen
