package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/itchyny/gojq"
)

// successTakes is the longest time of the expression for one answer.
const successTakes = time.Second

// success compiles the jq expression of --success. The returned function says why the body of an
// answer is no success. The expression must give true, and nothing else. It reads only the body: no
// environment, no other input, no file.
func success(expression string) (func(body []byte) error, error) {
	query, err := gojq.Parse(expression)
	if err != nil {
		at := 1 + len(expression)
		if e, ok := errors.AsType[*gojq.ParseError](err); ok {
			at = 1 + e.Offset - len(e.Token)
		}
		return nil, fmt.Errorf("%q, character %d: %v, expected a jq expression that is true of a success, like '.status == "+
			"\"OK\"'", expression, max(at, 1), err)
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return nil, fmt.Errorf("%q: %v, expected a jq expression of the answer alone that is true of a success, like "+
			"'.status == \"OK\"'", expression, err)
	}
	return func(body []byte) error { return succeeds(code, expression, body) }, nil
}

func succeeds(code *gojq.Code, expression string, body []byte) error {
	var v any
	d := json.NewDecoder(bytes.NewReader(body))
	if err := d.Decode(&v); err != nil || d.More() {
		return fmt.Errorf("which is no JSON, so that --success %s is not true", expression)
	}
	ctx, cancel := context.WithTimeout(context.Background(), successTakes)
	defer cancel()
	is, ok := code.RunWithContext(ctx, v).Next()
	switch {
	case !ok:
		return fmt.Errorf("of which --success %s is nothing", expression)
	case is == true:
		return nil
	}
	if err, failed := is.(error); failed {
		if ctx.Err() != nil {
			err = fmt.Errorf("it took longer than %v", successTakes)
		}
		return fmt.Errorf("of which --success %s fails: %w", expression, err)
	}
	return fmt.Errorf("of which --success %s is %.100s", expression, gojqText(is))
}

func gojqText(v any) string {
	text, err := gojq.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
