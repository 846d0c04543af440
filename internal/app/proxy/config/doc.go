// Package config reads the configuration of `paceline proxy` from a YAML file:
//
//	version: 1
//	listen: 127.0.0.1:7878
//	upstreams:
//	  - to: https://api.openai.com
//	    path: /openai                 # http://127.0.0.1:7878/openai/v1/… goes to https://api.openai.com/v1/…
//	    preset: openai:tier1
//	    keys:
//	      - {name: first, env: OPENAI_KEY}
//	    header:
//	      Authorization: Bearer {key}
//	clients:
//	  list:
//	    - name: alice
//	      keys: [{env: ALICE_KEY}]
//	      weight: 2
//	      limits: [5USD/d]
//
// A configuration file of the proxy must have the key "version", and the key "upstreams" with at
// least one upstream. Each upstream must have the key "to" or the key "targets". Most keys have the
// name of a field of proxy.Config, or of a type in it, in small letters: max_wait for MaxWait. The
// documentation of the field gives the default of the key.
//
// Package yamlfile reads a configuration file strictly: it collects the errors in the form of the
// file, at most 100, with the line of each and mostly the column. If there are none, proxy.Config
// checks whether the values fit together, and reports the first error. Secrets should be in
// environment variables or in files of their own. If a secret is in the configuration file itself,
// and users other than the file's owner may read the file, Load refuses the file. (On Windows, Load
// does not check this.)
//
// # Files
//
//	configfile.go    reads the file; its version; errors with their line; the JSON schema
//	tables.go        the keys of the file: a row for each, with the kind of its value
//	values.go        values: sizes, durations, addresses, models, limits; "want one such as
//	                 gpt-4o"
//	charges.go       what requests cost: "250 weight", or numbers and expressions by unit
//	secrets.go       keys and tokens: variables that are not set, files that others may read
//	certificates.go  TLS: certificates, their keys and the authorities that are trusted
package config
