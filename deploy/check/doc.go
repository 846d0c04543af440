// Package check tests the files in the other folders of deploy. It checks them with the libraries
// of the programs that read these files: Kubernetes, Compose and Grafana. The package is a module
// of its own, so that Paceline does not depend on these libraries. Other tests run such programs,
// for example systemd and Prometheus, with these files. Those tests are in cmd/paceline.
//
// The Helm chart is rendered by Go's templates, with the validator of schemas that Helm uses. Its
// own library takes a minute to compile. With it: go test -tags helm -count=1 . in this folder, as
// before each release.
package check
