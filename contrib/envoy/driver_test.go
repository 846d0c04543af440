package paceenvoy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	paceenvoy "github.com/paceline-go/paceline/contrib/envoy"
)

// driver does what Envoy's documentation says of its ext_proc filter, over real gRPC. It is not Envoy.
type driver struct {
	client extprocv3.ExternalProcessorClient
	to     http.RoundTripper
	// message and most are message_timeout and max_message_timeout.
	message, most time.Duration
	mode          *extprocv3.ProtocolConfiguration
}

// drive starts a processor, and returns a driver of it with the timeouts of envoy.yaml.
func drive(t *testing.T, c paceenvoy.Config, to http.RoundTripper) (d *driver, p *paceenvoy.Processor) {
	t.Helper()
	p, err := paceenvoy.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ln := bufconn.Listen(1 << 20)
	srv := grpc.NewServer()
	extprocv3.RegisterExternalProcessorServer(srv, p)
	go srv.Serve(ln)
	conn, err := grpc.NewClient("passthrough:///processor", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return ln.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		srv.Stop()
	})
	return &driver{client: extprocv3.NewExternalProcessorClient(conn), to: to, message: 200 * time.Millisecond, most: 2 * time.Minute,
		mode: &extprocv3.ProtocolConfiguration{}}, p
}

func headerMap(pseudo [][2]string, h http.Header) *corev3.HeaderMap {
	m := &corev3.HeaderMap{}
	for _, f := range pseudo {
		m.Headers = append(m.Headers, &corev3.HeaderValue{Key: f[0], RawValue: []byte(f[1])})
	}
	for name, values := range h {
		for _, v := range values {
			m.Headers = append(m.Headers, &corev3.HeaderValue{Key: strings.ToLower(name), RawValue: []byte(v)})
		}
	}
	return m
}

// answered is what the program behind Envoy gets.
type answered struct {
	status int
	header http.Header
	body   string
}

var errMessageTimeout = errors.New("message_timeout: no answer of the processor in time")

// ask waits for the processor's answer to a message, as long as Envoy does.
func (d *driver) ask(s extprocv3.ExternalProcessor_ProcessClient, m *extprocv3.ProcessingRequest) (*extprocv3.ProcessingResponse, error) {
	if err := s.Send(m); err != nil {
		return nil, err
	}
	type came struct {
		m   *extprocv3.ProcessingResponse
		err error
	}
	timeout := time.NewTimer(d.message)
	defer timeout.Stop()
	for overridden := false; ; {
		next := make(chan came, 1)
		go func() {
			m, err := s.Recv()
			next <- came{m, err}
		}()
		select {
		case c := <-next:
			if more := c.m.GetOverrideMessageTimeout(); c.err == nil && more != nil {
				if overridden || more.AsDuration() > d.most {
					return nil, fmt.Errorf("a timeout of %v, or a second one, is not taken", more.AsDuration())
				}
				overridden = true
				timeout.Reset(more.AsDuration())
				continue
			}
			return c.m, c.err
		case <-timeout.C:
			return nil, errMessageTimeout
		}
	}
}

// do passes one request through the filter and to the server.
func (d *driver) do(ctx context.Context, r *http.Request) (answered, error) {
	ctx, reset := context.WithCancel(ctx)
	defer reset()
	s, err := d.client.Process(ctx)
	if err != nil {
		return answered{}, err
	}
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	first := &extprocv3.ProcessingRequest{ProtocolConfig: d.mode, Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: &extprocv3.HttpHeaders{
		Headers: headerMap([][2]string{{":method", r.Method}, {":scheme", r.URL.Scheme}, {":authority", r.URL.Host},
			{":path", r.URL.RequestURI()}}, r.Header), EndOfStream: len(body) == 0}}}
	got, err := d.ask(s, first)
	if err != nil {
		return answered{}, err
	}
	pass := got.GetRequestHeaders().GetResponse()
	if d.mode.GetRequestBodyMode() == modev3.ProcessingMode_BUFFERED && len(body) != 0 && pass != nil {
		if got, err = d.ask(s, &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestBody{
			RequestBody: &extprocv3.HttpBody{Body: body, EndOfStream: true}}}); err != nil {
			return answered{}, err
		}
		pass = got.GetRequestBody().GetResponse()
	}
	if now := got.GetImmediateResponse(); now != nil {
		a := answered{status: int(now.GetStatus().GetCode()), header: http.Header{}, body: string(now.GetBody())}
		for _, f := range now.GetHeaders().GetSetHeaders() {
			a.header.Set(f.GetHeader().GetKey(), string(f.GetHeader().GetRawValue()))
		}
		return a, nil
	}
	if pass == nil {
		return answered{}, fmt.Errorf("an answer to another message: %v", got)
	}
	out := r.Clone(ctx)
	out.Body = io.NopCloser(bytes.NewReader(body))
	for _, name := range pass.GetHeaderMutation().GetRemoveHeaders() {
		out.Header.Del(name)
	}
	for _, f := range pass.GetHeaderMutation().GetSetHeaders() {
		out.Header.Set(f.GetHeader().GetKey(), string(f.GetHeader().GetRawValue()))
	}
	resp, err := d.to.RoundTrip(out)
	if err != nil {
		return answered{}, err // the stream is reset
	}
	defer resp.Body.Close()
	return d.back(s, resp)
}

// back passes the answer through the filter.
func (d *driver) back(s extprocv3.ExternalProcessor_ProcessClient, resp *http.Response) (answered, error) {
	whole, err := io.ReadAll(resp.Body)
	if err != nil {
		return answered{}, err
	}
	if _, err := d.ask(s, &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseHeaders{ResponseHeaders: &extprocv3.HttpHeaders{
		Headers: headerMap([][2]string{{":status", fmt.Sprint(resp.StatusCode)}}, resp.Header), EndOfStream: len(whole) == 0}}}); err != nil {
		return answered{}, err
	}
	if d.mode.GetResponseBodyMode() == modev3.ProcessingMode_STREAMED {
		for left := whole; len(left) > 0; {
			chunk := left[:min(len(left), 100)]
			left = left[len(chunk):]
			if _, err := d.ask(s, &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseBody{
				ResponseBody: &extprocv3.HttpBody{Body: chunk, EndOfStream: len(left) == 0}}}); err != nil {
				return answered{}, err
			}
		}
	}
	return answered{resp.StatusCode, resp.Header, string(whole)}, s.CloseSend()
}

// script is a stream whose messages are known before, each asked for after the answer to the one before.
type script struct {
	extprocv3.ExternalProcessor_ProcessServer
	ctx  context.Context
	in   []*extprocv3.ProcessingRequest
	sent int
}

func (s *script) Context() context.Context { return s.ctx }

func (s *script) Send(*extprocv3.ProcessingResponse) error { s.sent++; return nil }

func (s *script) Recv() (*extprocv3.ProcessingRequest, error) {
	if len(s.in) == 0 {
		return nil, io.EOF
	}
	m := s.in[0]
	s.in = s.in[1:]
	return m, nil
}
