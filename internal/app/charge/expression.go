package charge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"time"

	"github.com/itchyny/gojq"

	"github.com/paceline-go/paceline/provider"
)

// takes is how long an expression may take for one document.
const takes = 10 * time.Millisecond

// ends is how long an expression may take where there is nothing to read. A busy machine is no reason
// to refuse it.
const ends = 250 * time.Millisecond

// Expression is an expression in jq, ready to be used. It implements provider.Expression, and is safe for
// concurrent use. Its value for a document is a number of 0 or more, which is rounded up.
type Expression struct {
	text string
	code *gojq.Code
}

// Compile returns an expression. An expression that does not end, even where there is nothing to read, is
// an error.
func Compile(text string) (*Expression, error) {
	query, err := gojq.Parse(text)
	if err != nil {
		at := 1 + len(text)
		if e, ok := errors.AsType[*gojq.ParseError](err); ok {
			at = 1 + e.Offset - len(e.Token)
		}
		return nil, fmt.Errorf("%q, character %d: %v, expected a jq expression such as .variables.first", text, max(at, 1),
			err)
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return nil, fmt.Errorf("%q: %v, expected a jq expression of the body alone", text, err)
	}
	e := &Expression{text, code}
	if _, err := e.value(nil, ends); errors.Is(err, errSlow) {
		return nil, fmt.Errorf("%q does not end, expected a jq expression that takes %v at most", text, takes)
	}
	return e, nil
}

// String returns the expression as it was written.
func (e *Expression) String() string { return e.text }

// Count implements provider.Expression.
func (e *Expression) Count(document []byte) (int64, error) {
	var v any
	if err := json.Unmarshal(document, &v); err != nil {
		return 0, fmt.Errorf("%s: there is no JSON", e.text)
	}
	value, err := e.value(v, takes)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", e.text, err)
	}
	n, ok := count(value)
	if !ok {
		text, _ := gojq.Marshal(value)
		return 0, fmt.Errorf("%s is %.100s, expected a number of 0 or more", e.text, text)
	}
	return n, nil
}

var errSlow = fmt.Errorf("it took longer than %v", takes)

// value returns the first value of the expression.
func (e *Expression) value(v any, most time.Duration) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	value, ok := e.code.RunWithContext(ctx, v).Next()
	if err, failed := value.(error); failed {
		if ctx.Err() != nil {
			err = errSlow
		}
		return nil, err
	}
	if !ok {
		return nil, errors.New("it has no value")
	}
	return value, nil
}

// count returns a value as a count, rounded up.
func count(v any) (int64, bool) {
	f := -1.0
	switch v := v.(type) {
	case int:
		f = float64(v)
	case float64:
		f = math.Ceil(v)
	case *big.Int:
		f, _ = new(big.Float).SetInt(v).Float64()
	}
	return int64(f), f >= 0 && f <= provider.MaxCount
}
