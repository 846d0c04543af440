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

// evidence is what an attempt shows, in the words of HTTP.
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
	if a.peer.Addr == nil && len(in.Header) == 0 && s.Code() == codes.Unavailable { // gRPC's own word: it had no connection
		in.Status, in.Err, in.Wrote, in.Link = 0, err, classify.Nothing, limit.Unreachable
		return in
	}
	pushback(in.Header, s)
	return in
}

// statusOf returns what google/rpc/code.proto maps a code to, for those that tell of limits or may pass; 400 for what the caller
// did wrong; 0 where nobody has answered, or nobody can tell.
func statusOf(s *status.Status) int {
	switch s.Code() {
	case codes.ResourceExhausted:
		// gRPC itself says so of messages, too.
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

// pushback puts in a header how long the server asks to stay away, by RetryInfo or grpc-retry-pushback-ms: what is below 0, or no
// number, asks not to try again (gRFC A6).
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
