package pacegrpc

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider/classify"
)

// evidence returns the evidence of an attempt, in the terms of HTTP.
func evidence(ctx context.Context, a *attempt, err error) classify.Evidence {
	now := time.Now()
	in := classify.Evidence{Now: now, Took: now.Sub(a.began), RTT: now.Sub(a.began), Wrote: classify.Something, Header: http.Header{}, Ended: ctx.Err() != nil}
	for name, values := range a.header {
		in.Header[http.CanonicalHeaderKey(name)] = values
	}
	for name, values := range a.trailer {
		in.Header[http.CanonicalHeaderKey(name)] = values
	}
	if err == nil || errors.Is(err, io.EOF) {
		in.Status = http.StatusOK
		return in
	}
	s := status.Convert(err)
	if in.Status = statusOf(s); in.Status == 0 {
		in.Err, in.Link = err, limit.Silent
		if s.Code() == codes.Canceled {
			in.Link, in.Ended = limit.Implied, true
		}
		return in
	}
	// gRPC itself reports this: it had no connection.
	if a.peer.Addr == nil && len(in.Header) == 0 && s.Code() == codes.Unavailable {
		in.Status, in.Err, in.Wrote, in.Link = 0, err, classify.Nothing, limit.Unreachable
		return in
	}
	pushback(in.Header, s)
	return in
}

// statusOf returns the HTTP status of a code, as google/rpc/code.proto maps it. It does so for
// codes about limits, and for codes of a call that may pass later. A caller's mistake is 400.
// It is 0 if the server has not answered, or if that is unknown.
func statusOf(s *status.Status) int {
	switch s.Code() {
	case codes.ResourceExhausted:
		// gRPC itself uses this code for large messages, too.
		if m := s.Message(); strings.Contains(m, "message larger than max") || strings.Contains(m, "message exceeds maximum size") {
			return http.StatusRequestEntityTooLarge
		}
		return http.StatusTooManyRequests
	case codes.Unavailable:
		return http.StatusServiceUnavailable
	case codes.Canceled, codes.DeadlineExceeded:
		return 0
	case codes.Unknown, codes.Internal, codes.DataLoss:
		return http.StatusInternalServerError
	case codes.Unimplemented:
		return http.StatusNotImplemented
	case codes.PermissionDenied:
		return http.StatusForbidden
	case codes.Unauthenticated:
		return http.StatusUnauthorized
	case codes.NotFound:
		return http.StatusNotFound
	}
	return http.StatusBadRequest
}

// pushback writes the pause that the server asks for into a header. It reads RetryInfo and
// grpc-retry-pushback-ms. A value below 0, or no number, asks for no retry (gRFC A6).
func pushback(h http.Header, s *status.Status) {
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok && info.GetRetryDelay() != nil {
			ms := (info.GetRetryDelay().AsDuration() + time.Millisecond - 1) / time.Millisecond
			h.Set("Retry-After-Ms", strconv.FormatInt(int64(max(ms, 0)), 10))
		}
	}
	if v := h.Get("Grpc-Retry-Pushback-Ms"); v != "" {
		if ms, err := strconv.ParseInt(v, 10, 32); err == nil && ms >= 0 {
			h.Set("Retry-After-Ms", v)
		} else {
			h.Set("X-Should-Retry", "false")
		}
	}
}
