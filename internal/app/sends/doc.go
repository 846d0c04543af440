// Package sends gives the lines of a journal their meaning for a Transport: where each request counts,
// under names that outlive the process. Package proxy and package record use it.
package sends
