package auth

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/paceline-go/paceline/internal/secret"
)

// Client gets tokens for itself from an OAuth server (RFC 6749, 4.4: client credentials). Its
// requests do not count in any limit.
type Client struct {
	TokenURL *url.URL
	ID       string
	// SecretName is the public name of the secret, Secret its value.
	SecretName, Secret string
	Scopes             []string
	// Params are further parameters of the request, such as an audience.
	Params url.Values
	// TLS says which servers to trust. If nil, the system's default.
	TLS *tls.Config
	// Timeout bounds one request. If zero, 30 s.
	Timeout time.Duration
}

// String implements Issuer.
func (c *Client) String() string { return secret.SanitizeAddress(c.TokenURL.String()) }

// Secrets implements Issuer.
func (c *Client) Secrets() map[string]string { return map[string]string{c.SecretName: c.Secret} }

// Issue implements Issuer.
func (c *Client) Issue(ctx context.Context) (Token, error) {
	timeout := c.Timeout
	if timeout == 0 {
		timeout = 30 * time.Second
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = c.TLS
	defer transport.CloseIdleConnections()
	to := &http.Client{
		Transport: transport, Timeout: timeout,
		// A redirect is not followed, since the secret would go with it.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	config := clientcredentials.Config{
		ClientID: c.ID, ClientSecret: c.Secret, TokenURL: c.TokenURL.String(), Scopes: c.Scopes, EndpointParams: c.Params,
	}
	began := time.Now()
	got, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, to))
	if err != nil {
		return Token{}, c.reason(err)
	}
	t := Token{Value: got.AccessToken}
	if !got.Expiry.IsZero() {
		t.Lasts = max(time.Until(got.Expiry).Round(time.Second), 1)
	}
	return withExpiry(t, began), nil
}

// reason returns an error of the server in the server's text, as far as that is meant for people.
// Otherwise it returns the error of the connection.
func (c *Client) reason(err error) error {
	e, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return err
	}
	text := "answered " + e.Response.Status
	switch {
	case e.ErrorCode != "":
		text += ": " + e.ErrorCode
		if e.ErrorDescription != "" {
			text += ": " + e.ErrorDescription
		}
	case e.Response.StatusCode/100 == 3:
		text += ": redirects of the token endpoint are not followed, as the secret would go along"
	case len(e.Body) > 0:
		text += ": " + strings.Join(strings.Fields(string(e.Body)), " ")
	}
	if r := []rune(text); len(r) > lastWords {
		text = string(r[:lastWords]) + "…"
	}
	return fmt.Errorf("%s", text)
}
