package main

import (
	"bytes"
	"context"
	"strings"
)

// command runs a command line.
func command(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = execute(context.Background(), args, strings.NewReader(""), &out, &err)
	return code, out.String(), err.String()
}
