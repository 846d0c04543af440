package redis

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/paceline-go/paceline/internal/secret"
	"github.com/redis/go-redis/v9"
)

// Open returns a Store at an address. Close it after use.
//
//	redis://user:password@host:6379/0              one server, or any server of a cluster
//	redis://user:password@a:6379,b:6379,c:6379     servers of a cluster
//	redis://a:26379,b:26379/0?master_name=NAME     sentinels; &username=…&password=… are the server's
//	rediss://host?sslrootcert=FILE                 TLS; FILE has the CA's certificates
//	unix://user:password@/run/redis.sock?db=0      a socket
//
// With TLS, sslcert and sslkey name the files of the client's certificate. Further parameters are
// those of go-redis, such as dial_timeout. The error quotes nothing of the address.
func Open(address string) (*Store, error) {
	u, err := secret.ParseAddress(address)
	if errors.Is(err, secret.ErrScheme) {
		return nil, errors.New("share/redis: redis:// is missing in front, expected such as redis://127.0.0.1:6379")
	}
	if err != nil {
		return nil, fmt.Errorf("share/redis: %w", err)
	}
	switch u.Scheme {
	case "redis", "rediss", "unix":
	default:
		return nil, errors.New("share/redis: expected redis://, rediss:// or unix://")
	}
	secure, err := takeTLS(u)
	if err != nil {
		return nil, fmt.Errorf("share/redis: %w", err)
	}
	s := New(nil, "")
	switch hosts := strings.Split(u.Host, ","); {
	case u.Query().Get("master_name") != "":
		s.client, err = sentinels(several(u, hosts), secure)
	case len(hosts) > 1 || u.Query().Has("addr"):
		s.client, err = cluster(several(u, hosts), secure)
	default:
		s.client, s.cluster, err = one(u, secure)
	}
	if err != nil {
		return nil, fmt.Errorf("share/redis: %w", err)
	}
	return s, nil
}

// several returns the address of several servers in the form of go-redis.
func several(u *url.URL, hosts []string) string {
	v, q := *u, u.Query()
	v.Host = hosts[0]
	for _, host := range hosts[1:] {
		if (&url.URL{Host: host}).Port() == "" {
			port := "6379"
			if q.Has("master_name") {
				port = "26379"
			}
			host += ":" + port
		}
		q.Add("addr", host)
	}
	v.RawQuery = q.Encode()
	return v.String()
}

// one returns a client of one server, and a function that returns one of its cluster.
func one(u *url.URL, secure func(*tls.Config)) (redis.UniversalClient, func() redis.UniversalClient, error) {
	o, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, nil, err
	}
	secure(o.TLSConfig)
	o.MaxRetries = -1              // Turn tries again itself
	o.ContextTimeoutEnabled = true // otherwise a server that hangs holds up a turn, and Close, for its own 5 s
	if o.Network == "unix" {
		return redis.NewClient(o), nil, nil
	}
	return redis.NewClient(o), func() redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{o.Addr}, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig,
			ContextTimeoutEnabled: true, DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout,
		})
	}, nil
}

func cluster(address string, secure func(*tls.Config)) (redis.UniversalClient, error) {
	o, err := redis.ParseClusterURL(address)
	if err != nil {
		return nil, err
	}
	secure(o.TLSConfig)
	o.ContextTimeoutEnabled = true
	return redis.NewClusterClient(o), nil
}

func sentinels(address string, secure func(*tls.Config)) (redis.UniversalClient, error) {
	o, err := redis.ParseFailoverURL(address)
	if err != nil {
		return nil, err
	}
	secure(o.TLSConfig)
	o.MaxRetries, o.ContextTimeoutEnabled = -1, true
	return redis.NewFailoverClient(o), nil
}

// takeTLS takes the parameters of TLS out of an address, which go-redis does not have. The names
// are those of PostgreSQL.
func takeTLS(u *url.URL) (func(*tls.Config), error) {
	q := u.Query()
	roots, cert, key := q.Get("sslrootcert"), q.Get("sslcert"), q.Get("sslkey")
	q.Del("sslrootcert")
	q.Del("sslcert")
	q.Del("sslkey")
	if roots+cert+key == "" {
		return func(*tls.Config) {}, nil
	}
	if u.Scheme != "rediss" {
		return nil, errors.New("sslrootcert, sslcert and sslkey are of rediss://")
	}
	u.RawQuery = q.Encode()
	c := new(tls.Config)
	if roots != "" {
		text, err := os.ReadFile(roots)
		if err != nil {
			return nil, fmt.Errorf("sslrootcert: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("sslrootcert: there is no certificate in %s", roots)
		}
	}
	if cert+key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("sslcert and sslkey: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return func(of *tls.Config) {
		of.MinVersion, of.RootCAs, of.Certificates = tls.VersionTLS12, c.RootCAs, c.Certificates
	}, nil
}
