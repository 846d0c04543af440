package paceenvoy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// errGone is why a request is given up: its client is gone, or Envoy ended it.
var errGone = errors.New("paceenvoy: Envoy ended the request")

// visit is one stream, which is one request of Envoy.
type visit struct {
	processor *Processor
	stream    extprocv3.ExternalProcessor_ProcessServer
	messages  <-chan *extprocv3.ProcessingRequest // closed at the stream's end
	request   *http.Request
	config    *extprocv3.ProtocolConfiguration // nil from an Envoy that does not send it
	body      bool                             // whether the request waits at its body, and not at its header
	exchange  exchange
	ended     chan error // of the round trip; nil: it had an answer
}

// Process serves one request of Envoy. Its error is a status that says what is wrong with Envoy's configuration.
func (p *Processor) Process(stream extprocv3.ExternalProcessor_ProcessServer) error {
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(errGone)
	v := &visit{processor: p, stream: stream, messages: receive(ctx, stream), ended: make(chan error, 1),
		exchange: exchange{make(chan *http.Request), make(chan *http.Response)}}
	if err := v.prepare(context.WithValue(ctx, exchangeKey{}, &v.exchange)); err != nil {
		return err
	}
	if v.request == nil {
		return nil // it ended before its header was whole
	}
	go v.trip()
	err := v.serve()
	cancel(errGone)
	<-v.ended // nothing of the request goes on after its stream
	return err
}

// receive reads the messages of a stream, also while its request waits: so its end is seen.
func receive(ctx context.Context, stream extprocv3.ExternalProcessor_ProcessServer) <-chan *extprocv3.ProcessingRequest {
	messages := make(chan *extprocv3.ProcessingRequest)
	go func() {
		defer close(messages)
		for {
			m, err := stream.Recv()
			if err != nil {
				return
			}
			select {
			case messages <- m:
			case <-ctx.Done():
				return
			}
		}
	}()
	return messages
}

// prepare reads the request: its header and, if Envoy sends it whole, its body.
func (v *visit) prepare(ctx context.Context) error {
	m, ok := <-v.messages
	if !ok {
		return nil
	}
	h := m.GetRequestHeaders()
	switch v.config = m.GetProtocolConfig(); {
	case m.GetObservabilityMode():
		return status.Error(codes.FailedPrecondition, "paceenvoy: in observability_mode Envoy waits for no turn; expected false")
	case h == nil:
		return status.Error(codes.FailedPrecondition,
			"paceenvoy: the first message is no request header; expected request_header_mode: SEND")
	}
	if err := modes(v.config); err != nil {
		return err
	}
	r, err := request(ctx, h.GetHeaders())
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	if h.GetEndOfStream() || v.config.GetRequestBodyMode() != modev3.ProcessingMode_BUFFERED {
		v.request = r
		return nil
	}
	v.body = true
	if err := v.stream.Send(goOn(m)); err != nil {
		return err
	}
	if m, ok = <-v.messages; !ok {
		return nil
	}
	b := m.GetRequestBody()
	if b == nil || !b.GetEndOfStream() {
		return status.Error(codes.InvalidArgument, "paceenvoy: after the request's header came no whole body, but request_body_mode is BUFFERED")
	}
	withBody(r, b.GetBody())
	v.request = r
	return nil
}

// modes reports what of Envoy's processing_mode the processor cannot serve.
func modes(c *extprocv3.ProtocolConfiguration) error {
	switch c.GetRequestBodyMode() {
	case modev3.ProcessingMode_NONE, modev3.ProcessingMode_BUFFERED:
	default:
		return status.Errorf(codes.FailedPrecondition, "paceenvoy: request_body_mode is %v; expected NONE, or BUFFERED for token limits",
			c.GetRequestBodyMode())
	}
	switch c.GetResponseBodyMode() {
	case modev3.ProcessingMode_NONE, modev3.ProcessingMode_BUFFERED, modev3.ProcessingMode_STREAMED:
		return nil
	}
	return status.Errorf(codes.FailedPrecondition, "paceenvoy: response_body_mode is %v; expected NONE, or STREAMED for token limits",
		c.GetResponseBodyMode())
}

// trip has the transport decide on the request, up to the end of its answer.
func (v *visit) trip() {
	resp, err := v.processor.transport.RoundTrip(v.request)
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	v.ended <- err
	close(v.ended)
}

// serve holds the request until its turn, and then passes its answer to the transport.
func (v *visit) serve() error {
	sent, err := v.turn()
	if sent == nil {
		return err
	}
	held := &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestHeaders{}}
	if v.body {
		held.Request = &extprocv3.ProcessingRequest_RequestBody{}
	}
	if err := v.stream.Send(changed(goOn(held), v.request, sent)); err != nil {
		return err
	}
	return v.answer()
}

// turn waits until the request may go. If it may not, it is answered here.
func (v *visit) turn() (sent *http.Request, err error) {
	slow := time.NewTimer(v.processor.patience)
	defer slow.Stop()
	for {
		select {
		case sent = <-v.exchange.goes:
			return sent, nil
		case err := <-v.ended:
			return nil, v.stream.Send(refusal(err, time.Now()))
		case <-slow.C: // once a request, as Envoy has it
			more := durationpb.New(v.processor.maxWait + time.Second/2)
			if err := v.stream.Send(&extprocv3.ProcessingResponse{OverrideMessageTimeout: more}); err != nil {
				return nil, err
			}
		case m, ok := <-v.messages:
			if ok {
				return nil, status.Errorf(codes.FailedPrecondition, "paceenvoy: %T came while the request waits", m.GetRequest())
			}
			return nil, nil // the client is gone; its place is free
		}
	}
}

// answer passes the answer on, as far as Envoy shows it. Bodies and trailers go on at once.
func (v *visit) answer() error {
	var resp *http.Response
	var body *io.PipeWriter
	defer func() {
		if body != nil {
			body.CloseWithError(io.ErrUnexpectedEOF) // no effect after its end
		}
	}()
	for m := range v.messages {
		var last bool
		switch in := m.GetRequest().(type) {
		case *extprocv3.ProcessingRequest_ResponseHeaders:
			if resp != nil {
				return status.Error(codes.InvalidArgument, "paceenvoy: a second answer to one request")
			}
			var err error
			if resp, err = response(in.ResponseHeaders.GetHeaders()); err != nil {
				return status.Error(codes.InvalidArgument, err.Error())
			}
			last = in.ResponseHeaders.GetEndOfStream() || v.config.GetResponseBodyMode() == modev3.ProcessingMode_NONE
			if !last {
				resp.Body, body = io.Pipe()
			}
			select {
			case v.exchange.answer <- resp:
			case <-v.ended: // it was given up; nobody reads the body
				body = nil
			}
		case *extprocv3.ProcessingRequest_ResponseBody:
			if body == nil {
				break
			}
			_, _ = body.Write(in.ResponseBody.GetBody()) // no reader: nobody looks at it
			if last = in.ResponseBody.GetEndOfStream(); last {
				body.Close()
			}
		case *extprocv3.ProcessingRequest_ResponseTrailers:
			if last = true; body != nil {
				resp.Trailer = fields(in.ResponseTrailers.GetTrailers())
				body.Close()
			}
		}
		if last {
			<-v.ended // a pause that the answer asks for holds before its program has the answer
		}
		if err := v.stream.Send(goOn(m)); err != nil || last {
			return err
		}
	}
	return nil
}
