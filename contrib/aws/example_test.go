package paceaws_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	paceaws "github.com/paceline-go/paceline/contrib/aws"
	"github.com/paceline-go/paceline/limit"
)

// One limit for every client of an aws.Config. The SDK's own retries wait for their turn too.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		fmt.Fprint(w, identity)
	}))
	defer server.Close()

	pace, err := paceaws.New(paceaws.Config{Limiter: limit.MustRolling(500, time.Minute)})
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg := aws.Config{ // config.LoadDefaultConfig(ctx)
		Region: "us-east-1", BaseEndpoint: aws.String(server.URL),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIATEST", SecretAccessKey: "test"}, nil
		}),
	}
	cfg.APIOptions = append(cfg.APIOptions, pace.Add)

	who, err := sts.NewFromConfig(cfg).GetCallerIdentity(context.Background(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(aws.ToString(who.Account), pace.Stats().Accepted)
	// Output: 1 1
}
