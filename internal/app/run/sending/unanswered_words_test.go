package sending

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/limit"
)

// What there was instead of an answer, in a word or two.
func TestWhyUnanswered(t *testing.T) {
	late, broken := lateError("no answer within 30s"), errors.New("unexpected EOF")
	for want, cases := range map[string][]Response{
		"timeout":                    {{Err: fmt.Errorf("h: %w", late)}, {Err: fmt.Errorf("h: %w", os.ErrDeadlineExceeded)}, {Err: &net.OpError{Op: "dial", Err: context.DeadlineExceeded}}},
		"unknown host":               {{Err: broken, Sight: limit.NoName}},
		"TLS handshake":              {{Err: broken, Sight: limit.BadCertificate}},
		"no files left here":         {{Err: broken, Sight: limit.NoFiles}},
		"connection refused":         {{Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}},
		"connection reset":           {{Err: &net.OpError{Op: "read", Err: syscall.ECONNRESET}}},
		"connection closed":          {{Err: inWordsOf{"the connection was closed", io.EOF}}, {Err: io.ErrUnexpectedEOF}},
		syscall.EHOSTUNREACH.Error(): {{Err: inWordsOf{"connect: no way", &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}}}},
		syscall.ENETUNREACH.Error():  {{Err: &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ENETUNREACH)}}},
		"no answer":                  {{Err: broken}},
	} {
		for _, res := range cases {
			if got := res.Unanswered(); got != want {
				t.Errorf("%v: %q, want %q", res.Err, got, want)
			}
		}
	}
}

// What the user broke off says so, and not how the program knows it.
func TestBrokenOffInWords(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := (&Sender{}).reason(ctx, secret.New(nil), fmt.Errorf("Get: %w", context.Canceled))
	if err.Error() != "the run broke it off before its answer" || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
