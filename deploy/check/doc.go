// Package check tests the files in the other folders of deploy with the libraries of the programs
// that read these files: Kubernetes, Compose and Grafana. The package is a module of its own, so
// that Paceline does not depend on these libraries. Other tests of these files run the programs,
// such as systemd and Prometheus, and are in cmd/paceline.
package check
