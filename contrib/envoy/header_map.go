package paceenvoy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// value is the value of a field. Envoy sends it as bytes, since it may be no UTF-8.
func value(f *corev3.HeaderValue) string {
	if raw := f.GetRawValue(); len(raw) != 0 {
		return string(raw)
	}
	return f.GetValue()
}

// fields returns the fields of a message, without those of HTTP/2 that begin with a colon.
func fields(m *corev3.HeaderMap) http.Header {
	h := make(http.Header, len(m.GetHeaders()))
	for _, f := range m.GetHeaders() {
		if !strings.HasPrefix(f.GetKey(), ":") {
			h.Add(f.GetKey(), value(f))
		}
	}
	return h
}

// pseudo returns a field that begins with a colon; empty: there is none.
func pseudo(m *corev3.HeaderMap, name string) string {
	for _, f := range m.GetHeaders() {
		if f.GetKey() == name {
			return value(f)
		}
	}
	return ""
}

// request makes a request of its header.
func request(ctx context.Context, m *corev3.HeaderMap) (*http.Request, error) {
	method, host, path := pseudo(m, ":method"), pseudo(m, ":authority"), pseudo(m, ":path")
	if method == "" || host == "" {
		return nil, fmt.Errorf("paceenvoy: the request's header has :method %q and :authority %q; expected both", method, host)
	}
	u, err := url.ParseRequestURI(path)
	if err != nil {
		return nil, fmt.Errorf("paceenvoy: the request's :path: %w", err)
	}
	u.Host = host
	if u.Scheme = pseudo(m, ":scheme"); u.Scheme == "" {
		u.Scheme = "http"
	}
	r := &http.Request{Method: method, URL: u, Host: host, Header: fields(m), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if n, err := strconv.ParseInt(r.Header.Get("Content-Length"), 10, 64); err == nil {
		r.ContentLength = n
	}
	return r.WithContext(ctx), nil
}

// withBody gives a request its body.
func withBody(r *http.Request, body []byte) {
	r.ContentLength = int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, _ = r.GetBody()
}

// response makes an answer without a body of its header.
func response(m *corev3.HeaderMap) (*http.Response, error) {
	text := pseudo(m, ":status")
	code, err := strconv.Atoi(text)
	if err != nil || code < 100 || code > 999 {
		return nil, fmt.Errorf("paceenvoy: the answer's :status is %q; expected three digits", text)
	}
	return &http.Response{StatusCode: code, Status: text + " " + http.StatusText(code), Header: fields(m), Body: http.NoBody,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1}, nil
}

// goOn is the answer to a message that lets it pass as it is.
func goOn(m *extprocv3.ProcessingRequest) *extprocv3.ProcessingResponse {
	pass := &extprocv3.CommonResponse{}
	switch m.GetRequest().(type) {
	case *extprocv3.ProcessingRequest_RequestHeaders:
		return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestHeaders{
			RequestHeaders: &extprocv3.HeadersResponse{Response: pass}}}
	case *extprocv3.ProcessingRequest_RequestBody:
		return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestBody{
			RequestBody: &extprocv3.BodyResponse{Response: pass}}}
	case *extprocv3.ProcessingRequest_RequestTrailers:
		return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestTrailers{
			RequestTrailers: &extprocv3.TrailersResponse{}}}
	case *extprocv3.ProcessingRequest_ResponseHeaders:
		return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseHeaders{
			ResponseHeaders: &extprocv3.HeadersResponse{Response: pass}}}
	case *extprocv3.ProcessingRequest_ResponseBody:
		return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseBody{
			ResponseBody: &extprocv3.BodyResponse{Response: pass}}}
	}
	return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseTrailers{
		ResponseTrailers: &extprocv3.TrailersResponse{}}}
}

// changed has Envoy put on the request what the transport has: the credential of a key.
func changed(to *extprocv3.ProcessingResponse, came, sent *http.Request) *extprocv3.ProcessingResponse {
	m := &extprocv3.HeaderMutation{}
	for name, values := range sent.Header {
		if !slices.Equal(values, came.Header[name]) {
			for i, v := range values {
				set := field(name, v)
				set.AppendAction = corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD
				if i > 0 {
					set.AppendAction = corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD
				}
				m.SetHeaders = append(m.SetHeaders, set)
			}
		}
	}
	for name := range came.Header {
		if _, ok := sent.Header[name]; !ok {
			m.RemoveHeaders = append(m.RemoveHeaders, strings.ToLower(name))
		}
	}
	if path := sent.URL.RequestURI(); path != came.URL.RequestURI() {
		m.SetHeaders = append(m.SetHeaders, field(":path", path))
	}
	if len(m.SetHeaders) == 0 && len(m.RemoveHeaders) == 0 {
		return to
	}
	pass := to.GetRequestHeaders().GetResponse()
	if pass == nil {
		pass = to.GetRequestBody().GetResponse()
	}
	pass.HeaderMutation = m
	return to
}

func field(name, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{Header: &corev3.HeaderValue{Key: strings.ToLower(name), RawValue: []byte(value)}}
}
