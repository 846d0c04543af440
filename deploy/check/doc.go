// Package check contains tests of the files beside it, by the libraries of those who read them: Kubernetes,
// Compose and Grafana. It is a module of its own for their sake. Tests by programs, systemd and Prometheus
// among them, are in cmd/paceline.
package check
