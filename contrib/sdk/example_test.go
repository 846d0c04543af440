package sdk

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/paceline-go/paceline/ratetest/llm"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/transport"
)

// OpenAI's SDK on a transport: it is handed an http.Client. What it would send again itself the transport already has, so the
// SDK's own retries are off.
func Example() {
	server, err := llm.New(llm.Config{Provider: llm.OpenAI})
	if err != nil {
		fmt.Println(err)
		return
	}
	host := httptest.NewServer(server)
	defer host.Close()

	estimator, err := tokens.New(tokens.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	paced := transport.Must(transport.Config{Preset: "openai:tier1", Tokens: estimator})
	client := openai.NewClient(
		option.WithHTTPClient(&http.Client{Transport: paced}),
		option.WithMaxRetries(0),
		option.WithAPIKey("sk-test"),
		option.WithBaseURL(host.URL+"/v1/"), // without it, OpenAI
	)
	answer, err := client.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{
		Model:               openai.ChatModelGPT4o,
		MaxCompletionTokens: openai.Int(50),
		Messages:            []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Why?")},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Choices[0].Message.Content != "", server.Report().Verdicts["accepted"])
	paced.CloseIdleConnections()
	// Output: true 1
}
