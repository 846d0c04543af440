package tokens_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/paceline-go/paceline/tokens"
)

// What does a request cost before its answer is known, in the way in which a provider counts?
func ExampleParse() {
	api := tokens.APIOf("/v1/chat/completions")
	request := []byte(`{"model":"gpt-4o","max_tokens":500,"messages":[{"role":"user","content":"Why?"}]}`)
	body, err := tokens.Parse(api, request)
	if err != nil {
		fmt.Println(errors.Is(err, tokens.ErrMalformed), err)
		return
	}
	estimator, err := tokens.New(tokens.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	estimate, err := estimator.Estimate(api, request)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(body.API, body.Model, body.MaxOutput)
	for _, name := range []string{"reserved", "sum", "input"} {
		counting, err := tokens.ParseCounting(name)
		if err != nil {
			fmt.Println(err)
			return
		}
		input, output, total := counting.Reserve(estimate, body)
		fmt.Println(counting, input > 0, output, total >= 500)
	}
	// Output:
	// chat gpt-4o 500
	// reserved true 500 true
	// sum true 500 true
	// input true 0 false
}

// The model of a request is in its body, or in its URL.
func ExampleModelOf() {
	for _, text := range []string{"https://east.openai.azure.com/openai/deployments/four/chat/completions",
		"https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:generateContent",
		"https://api.openai.com/v1/responses"} {
		u, err := url.Parse(text)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%v %q\n", tokens.APIOf(u.Path), tokens.ModelOf(u))
	}
	// Output:
	// chat "four"
	// Gemini "gemini-2.5-pro"
	// responses ""
}

// An answer passes through, and its usage is read on the way.
func ExampleNewWatcher() {
	stream := strings.Join([]string{
		`data: {"choices":[{"delta":{"content":"Because."}}]}`,
		`data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`,
		"data: [DONE]", "",
	}, "\n\n")
	isStream := tokens.IsStream("text/event-stream; charset=utf-8")
	w := tokens.NewWatcher(tokens.Chat, isStream, strings.NewReader(stream))
	n, err := io.Copy(io.Discard, w) // to the client
	fmt.Println(n == int64(len(stream)), err)
	usage, err := w.Usage()
	fmt.Println(usage.Input, usage.Output, err)

	w = tokens.NewWatcher(tokens.Chat, true, strings.NewReader(stream[:50])) // the connection broke
	io.Copy(io.Discard, w)
	_, err = w.Usage()
	fmt.Println(errors.Is(err, tokens.ErrIncomplete))
	_, err = tokens.ParseUsage(tokens.Chat, []byte(`{"id":"batch_1","status":"queued"}`))
	fmt.Println(errors.Is(err, tokens.ErrNoUsage))
	header, ok := tokens.HeaderUsage(http.Header{
		"X-Amzn-Bedrock-Input-Token-Count": {"9"}, "X-Amzn-Bedrock-Output-Token-Count": {"2"},
	})
	fmt.Println(header.Input, header.Output, ok)
	// Output:
	// true <nil>
	// 9 2 <nil>
	// true
	// true
	// 9 2 true
}
