package forward

// At is what programs need to reach a Door.
type At struct {
	// URL is the forward proxy's, with the client's credential as its password, if it needs one.
	URL string
	// Bundle is the file of the certificates that programs are to trust.
	Bundle string
}

// Variable is a variable of the environment by which some programs reach a Door.
type Variable struct {
	Name string
	// Of makes the value.
	Of func(At) string
	// For names the programs that read it.
	For string
}

// IsBundle reports whether the value is the bundle.
func (v Variable) IsBundle() bool { return v.Of(At{Bundle: "b"}) == "b" }

func proxyURL(a At) string { return a.URL }
func bundle(a At) string   { return a.Bundle }

// Variables is the table: each variable was tried with its programs, but for those of which For says
// otherwise. A variable of certificates replaces what a program trusts, so the bundle has the
// system's, too.
var Variables = []Variable{
	{"HTTPS_PROXY", proxyURL, "most programs, for https"},
	{"https_proxy", proxyURL, "wget, Perl, and others that read lower case"},
	{"HTTP_PROXY", proxyURL, "most programs, for http"},
	{"http_proxy", proxyURL, "curl and wget, for http"},
	{"ALL_PROXY", proxyURL, "curl and httpx, for both"},
	{"all_proxy", proxyURL, "curl, for both"},
	{"NODE_USE_ENV_PROXY", func(At) string { return "1" }, "Node 22.21, 24.5 and later: fetch and https read HTTPS_PROXY"},
	{"SSL_CERT_FILE", bundle, "OpenSSL, Go, Ruby, httpx, aiohttp, urllib, rclone"},
	{"CURL_CA_BUNDLE", bundle, "curl"},
	{"GIT_SSL_CAINFO", bundle, "git"},
	{"REQUESTS_CA_BUNDLE", bundle, "requests, HTTPie"},
	{"PIP_CERT", bundle, "pip"},
	{"AWS_CA_BUNDLE", bundle, "boto3, the AWS command line"},
	{"NODE_EXTRA_CA_CERTS", bundle, "Node"},
	{"npm_config_cafile", bundle, "npm"},
	{"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", bundle, "grpcio and the gRPC libraries of C++"},
	{"PERL_LWP_SSL_CA_FILE", bundle, "Perl's LWP"},
	{"DENO_CERT", bundle, "Deno (not tried)"},
	{"CARGO_HTTP_CAINFO", bundle, "Cargo (not tried)"},
	{"HTTPLIB2_CA_CERTS", bundle, "httplib2"},
	{"NIX_SSL_CERT_FILE", bundle, "Nix (not tried)"},
	{"CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", bundle, "gcloud (not tried)"},
	{"BUNDLE_SSL_CA_CERT", bundle, "Bundler (not tried)"},
	{"HEX_CACERTS_PATH", bundle, "Elixir's Hex (not tried)"},
}
