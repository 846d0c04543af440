package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

func TestServes(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "envoy.sock")
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"--listen", "unix:" + socket, "--limit", "1/m", "--max-wait", "1s"}, &out)
	}()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ask := func() *extprocv3.ProcessingResponse {
		waiting, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		s, err := extprocv3.NewExternalProcessorClient(conn).Process(waiting, grpc.WaitForReady(true))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: &extprocv3.HttpHeaders{
			EndOfStream: true, Headers: &corev3.HeaderMap{Headers: []*corev3.HeaderValue{{Key: ":method", RawValue: []byte("GET")},
				{Key: ":authority", RawValue: []byte("api.example.com")}, {Key: ":path", RawValue: []byte("/")}}}}}}); err != nil {
			t.Fatal(err)
		}
		m, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if m := ask(); m.GetRequestHeaders() == nil {
		t.Errorf("the first request: %v", m)
	}
	if m := ask(); m.GetImmediateResponse().GetStatus().GetCode() != 429 {
		t.Errorf("the second request: %v", m)
	}
	conn.Close()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "1 requests, 0 refused") {
		t.Error(out.String())
	}
}

func TestBadFlags(t *testing.T) {
	for want, args := range map[string][]string{
		`unexpected "x"`:        {"x"},
		"-limit":                {"--limit", "20"},
		"Preset":                {"--preset", "opnai"},
		"--listen 256.0.0.1:1":  {"--listen", "256.0.0.1:1"},
		"MaxWait -1s":           {"--max-wait", "-1s"},
		"flag provided but not": {"--limits", "20/s"},
	} {
		if err := run(t.Context(), args, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v; want %q in it", args, err, want)
		}
	}
}
