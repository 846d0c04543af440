package paceenvoy

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/transport"
)

// problem is the body of a refusal, by RFC 9457.
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Limit  string `json:"limit,omitempty"`
	WaitMS int64  `json:"wait_ms,omitempty"`
}

// refusal is the answer to a request that was not sent, in the place of the server's.
func refusal(err error, now time.Time) *extprocv3.ProcessingResponse {
	p := problem{Title: "The request has no turn", Status: http.StatusTooManyRequests, Detail: err.Error()}
	code := codes.ResourceExhausted
	var ready time.Time
	if e, ok := errors.AsType[*transport.Error](err); ok {
		p.Limit, ready = e.Name, e.Ready
	}
	switch {
	case errors.Is(err, transport.ErrOutage), errors.Is(err, transport.ErrKeys):
		p.Status, code = http.StatusServiceUnavailable, codes.Unavailable
	case errors.Is(err, paceline.ErrNever):
		p.Status, p.Title = http.StatusRequestEntityTooLarge, "The request is larger than the limit"
	case errors.Is(err, transport.ErrPrice):
		p.Status, p.Title, code = http.StatusForbidden, "What the request costs is not known", codes.PermissionDenied
	}
	headers := &extprocv3.HeaderMutation{}
	headers.SetHeaders = append(headers.SetHeaders, field("content-type", "application/problem+json"))
	if wait := ready.Sub(now); !ready.IsZero() {
		p.WaitMS = max(wait.Milliseconds(), 1)
		headers.SetHeaders = append(headers.SetHeaders, field("retry-after", strconv.Itoa(max(int(math.Ceil(wait.Seconds())), 1))))
	}
	body, fault := json.Marshal(p)
	if fault != nil {
		panic(fault) // cannot fail: every field has a JSON form
	}
	return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ImmediateResponse{
		ImmediateResponse: &extprocv3.ImmediateResponse{
			Status: &typev3.HttpStatus{Code: typev3.StatusCode(p.Status)}, Headers: headers, Body: append(body, '\n'),
			GrpcStatus: &extprocv3.GrpcStatus{Status: uint32(code)}, Details: "paceline_no_turn",
		},
	}}
}
