package service_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/paceline-go/paceline/ratetest/service"
)

// A server that counts as GitHub does writes a log. Judge finds out from it whether the limits held.
func ExampleJudge() {
	for _, info := range service.All() {
		if info.Name == "github" {
			fmt.Println(info.About, len(info.Presets) > 0)
		}
	}
	var log bytes.Buffer
	config := service.Config{Provider: "github", LogTo: &log}
	server, err := service.New(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	ask := httptest.NewRequest(http.MethodGet, "/user", nil)
	ask.Header.Set("Authorization", "Bearer mine")
	answer := httptest.NewRecorder()
	server.ServeHTTP(answer, ask)
	fmt.Println(answer.Code, answer.Header().Get("X-Ratelimit-Remaining"))

	var line service.Line
	if err := json.Unmarshal(bytes.SplitN(log.Bytes(), []byte("\n"), 2)[0], &line); err != nil {
		fmt.Println(err)
	}
	fmt.Println(line.Verdict, len(line.Counts) > 0)
	report, err := service.Judge(config, &log)
	fmt.Println(report.Accepted, report.Wrong, len(report.Limits) > 0, err)
	// Output:
	// GitHub's REST API: primary limits, and secondary ones of requests at once true
	// 200 4999
	// accepted true
	// 1 0 true <nil>

}
