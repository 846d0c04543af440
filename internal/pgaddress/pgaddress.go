// Package pgaddress reads addresses of PostgreSQL, and keeps their passwords out of errors.
package pgaddress

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/paceline-go/paceline/internal/secret"
)

// Parse is pgxpool.ParseConfig, whose error quotes the address with parts of odd passwords.
func Parse(url string) (*pgxpool.Config, error) {
	_, wrong := secret.ParseAddress(url)
	isURL := strings.Contains(url, "://")
	if isURL && wrong != nil {
		return nil, wrong
	}
	c, err := pgxpool.ParseConfig(url)
	if err == nil {
		return c, nil
	}
	const quoted = "`: " // the end of the address in the error
	text := err.Error()
	if i := strings.LastIndex(text, quoted); isURL && i >= 0 {
		return nil, errors.New(text[i+len(quoted):])
	}
	return nil, errors.New("the address cannot be read, expected postgres://USER:PASSWORD@HOST/NAME")
}
