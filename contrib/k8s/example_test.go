package pacek8s_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	pacek8s "github.com/paceline-go/paceline/contrib/k8s"
	"github.com/paceline-go/paceline/contrib/xrate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/transport"
)

// The limit of an API server, for all clients of a rest.Config.
func ExampleWrap() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }))
	defer server.Close()

	cfg := &rest.Config{Host: server.URL} // rest.InClusterConfig(), clientcmd.BuildConfigFromFlags(…)
	paced, err := pacek8s.Wrap(cfg, transport.Config{Limiter: limit.MustRolling(100, time.Second)})
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg.ContentConfig.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()) // as kubernetes.NewForConfig does for its own
	client, err := rest.UnversionedRESTClientFor(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := client.Get().AbsPath("/healthz").DoRaw(context.Background())
	fmt.Println(string(answer), err, paced.Stats().Attempts)
	// Output: ok <nil> 1
}

// Only a flowcontrol.RateLimiter is possible here. The caller promises that a request is counted
// within 200 ms.
func ExampleNew() {
	limiter, err := pacek8s.New(xrate.Config{Limiter: limit.MustRolling(100, time.Second), Within: 200 * time.Millisecond})
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg := &rest.Config{RateLimiter: limiter}
	fmt.Println(cfg.RateLimiter.TryAccept(), cfg.RateLimiter.QPS())
	// Output: true 100
}
