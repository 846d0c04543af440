// Package check tests the files in the folders beside it with the libraries of the programs that
// read them: Kubernetes, Compose and Grafana. It is a module of its own, so that Paceline does not
// depend on these libraries. Tests that run programs, such as systemd and Prometheus, are in
// cmd/paceline.
package check
