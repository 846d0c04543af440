// Command release builds, from a clean clone, all files of a release of Paceline. It builds for
// Linux, macOS and Windows, on amd64 and arm64. For each of these six platforms (or for those of
// the flag --only) it makes an archive with two programs, their man pages and completions. The
// programs are paceline and paceline-lab, the simulator.
//
// A release also contains packages for Debian, an image for containers, and npm packages of the
// program. The image and the npm packages contain paceline alone, without paceline-lab. The Python
// and JavaScript clients, by which other programs get permits to send, are in the release as a
// wheel and an npm package. The file SHA256SUMS contains the checksums of all these files. Command
// release needs Go and git, and uses the network only for Go modules.
//
//	tools/release/build DIR
//
// Builds of a release are reproducible: the same commit and version of Go give the same bytes, in
// any folder and at any time. docs/install.md shows how to check that. When a tag is pushed, the
// release workflow runs command release and uploads the result. Tests run command release, too, and
// install the result.
//
// # Files
//
//	main.go             the steps of a release, its platforms, --only
//	source_archive.go   the commit, its tag, and the version that is made of them
//	binaries.go         compiles the programs; their man pages and completions
//	files.go            tar.gz, zip and SHA256SUMS, with the same bytes each time
//	deb.go              packages for Debian: where files go, dependencies
//	image.go            the image for containers, with root certificates
//	npm.go              npm packages of the program, one for each platform
//	clients.go          the Python client as a wheel, and the JavaScript client for npm
//	license_notices.go  the licences of all modules in the programs
package main
