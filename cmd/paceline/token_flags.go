package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/auth"
	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/format"
)

// tokenFlags name the source of the {token} in requests.
type tokenFlags struct {
	command             string
	every               time.Duration
	url                 string
	idEnv, secretEnv    string
	scopes, oauthParams []string
}

func (f *tokenFlags) add(p *pflag.FlagSet) {
	p.StringVar(&f.command, "auth-command", "",
		"command that prints a token, or JSON with access_token and expires_in, for {token} in --header or --query "+
			"(default: 'Authorization: Bearer {token}'). It runs again before the token expires, and after a 401")
	p.DurationVar(&f.every, "auth-every", 0,
		"time between new tokens (default: before the stated end of a token, and after a 401)")
	p.StringVar(&f.url, "oauth-token-url", "",
		"address of an OAuth server that gives tokens for {token}, for the credentials of a client")
	p.StringVar(&f.idEnv, "oauth-client-id-env", "", "environment variable with the client's id")
	p.StringVar(&f.secretEnv, "oauth-client-secret-env", "", "environment variable with the client's secret")
	p.StringSliceVar(&f.scopes, "oauth-scopes", nil, "scopes to ask for, A,B")
	p.StringArrayVar(&f.oauthParams, "oauth-param", nil,
		"'name=value' to send besides, such as 'audience=https://api.example.com'; repeatable")
}

// config puts a token into requests, if the flags name a source.
func (f *tokenFlags) config(cmd *cobra.Command, c *run.Config) error {
	for _, name := range []string{"auth-command", "oauth-token-url"} { // an unset variable of a script
		if flag := cmd.Flag(name); flag.Changed && flag.Value.String() == "" {
			return cli.Usage(fmt.Errorf("--%s is empty, expected what gives tokens", name))
		}
	}
	if err := f.check(); err != nil {
		return cli.Usage(err)
	}
	uses := format.Uses(c.Header, "token") || format.Uses(c.Query, "token")
	b := &run.Bearer{LifeConfig: auth.LifeConfig{Every: f.every}}
	switch {
	case f.command != "":
		b.Issuer = auth.Command{Line: f.command}
	case f.url != "":
		client, err := f.client()
		if err != nil {
			return err
		}
		b.Issuer = client
	case uses:
		return cli.Usage(errors.New("{token} in --header or --query, and nobody who gives one: expected --auth-command or " +
			"--oauth-token-url"))
	default:
		return nil
	}
	c.Bearer = b
	if uses {
		return nil
	}
	if slices.ContainsFunc(c.Header,
		func(t format.Template) bool { return http.CanonicalHeaderKey(t.Name()) == "Authorization" }) {
		return cli.Usage(errors.New("a token without {token} in --header or --query, and --header has another " +
			"Authorization: no request would have it"))
	}
	all, err := format.ParseHeaders([]string{"Authorization: Bearer {token}"})
	c.Header = append(c.Header, all...)
	return err
}

// check refuses flags that make no sense together.
func (f *tokenFlags) check() error {
	oauth := f.idEnv != "" || f.secretEnv != "" || len(f.scopes)+len(f.oauthParams) > 0
	switch {
	case f.command != "" && f.url != "":
		return errors.New("--auth-command and --oauth-token-url: both give tokens, expected one of them")
	case f.url == "" && oauth:
		return errors.New("--oauth-… without --oauth-token-url, expected where tokens are given")
	case f.url != "" && f.idEnv == "":
		return errors.New("--oauth-token-url without --oauth-client-id-env, expected the environment variable that has the " +
			"client's id")
	case f.url != "" && f.secretEnv == "":
		return errors.New("--oauth-token-url without --oauth-client-secret-env, expected the environment variable that has " +
			"the client's secret")
	case f.every < 0:
		return fmt.Errorf("--auth-every %v, expected a duration above 0", f.every)
	case f.every != 0 && f.command == "" && f.url == "":
		return errors.New("--auth-every without --auth-command or --oauth-token-url: there is no token to renew")
	}
	return nil
}

// client reads the credentials. Its errors name variables and never their values.
func (f *tokenFlags) client() (*auth.Client, error) {
	u, err := url.Parse(f.url)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "" || u.User != nil {
		return nil, cli.Usage(errors.New("--oauth-token-url, expected an absolute http or https URL without a user and " +
			"without #"))
	}
	params := url.Values{}
	for _, p := range f.oauthParams {
		name, value, ok := strings.Cut(p, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, cli.Usage(fmt.Errorf("--oauth-param %q, expected 'name=value'", p))
		}
		params.Add(name, strings.TrimSpace(value))
	}
	id, err := format.KeysFromEnv("oauth-client-id-env", []string{f.idEnv}, os.LookupEnv)
	if err != nil {
		return nil, cli.Exit(cli.ExitConfig, err)
	}
	secret, err := format.KeysFromEnv("oauth-client-secret-env", []string{f.secretEnv}, os.LookupEnv)
	if err != nil {
		return nil, cli.Exit(cli.ExitConfig, err)
	}
	return &auth.Client{
		TokenURL: u, ID: id[0].Secret, SecretName: secret[0].Name, Secret: secret[0].Secret, Scopes: f.scopes, Params: params,
	}, nil
}
