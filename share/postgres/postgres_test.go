package postgres_test

import (
	"context"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/share/postgres"
	"github.com/paceline-go/paceline/share/sharetest"
)

func TestStore(t *testing.T) {
	url := need.PostgreSQL(t).URL
	sharetest.Run(t, func(t *testing.T) share.Store {
		s, err := postgres.Open(context.Background(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	})
}

func TestUnreachable(t *testing.T) {
	for _, url := range []string{"postgres://paceline@127.0.0.1:1/x?sslmode=disable", "http://x", "postgres://%"} {
		if s, err := postgres.Open(context.Background(), url); err == nil {
			s.Close()
			t.Errorf("%s is open", url)
		}
	}
}
