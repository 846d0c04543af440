package service_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/service"
)

// A server that refuses as GitHub does. Its limit is lowered to two requests in any hour, so that a
// test soon reaches it.
func ExampleNew() {
	server, err := service.New(service.Config{Provider: "github", Limits: []provider.Policy{{Name: "requests", Limit: 2, Rule: provider.Rolling}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		ask := httptest.NewRequest(http.MethodGet, "/repos/golang/go", nil)
		ask.Header.Set("Authorization", "Bearer mine")
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, ask)
		fmt.Println(answer.Code, answer.Header().Get("X-Ratelimit-Remaining"), "left")
	}
	report := server.Report()
	fmt.Println(report.Accepted, "accepted,", report.Limited, "refused")
	// Output:
	// 200 1 left
	// 200 0 left
	// 403 0 left
	// 2 accepted, 1 refused
}
