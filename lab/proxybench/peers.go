package proxybench

import (
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/paceline-go/paceline/internal/testkit/daemon"
)

// task says what a proxy has to do with requests.
type task int

const (
	pass   task = iota // pass on whatever comes
	hold               // have all but the first wait
	strict             // keep within Limit per second
)

// peer is one of the proxies that are measured.
type peer struct {
	name string
	does string // in the words of its own configuration
	// program returns the program to run for a task, or an error if it is not installed. ok is false
	// if the proxy cannot do the task.
	program func(b *Config, t task, upstream *url.URL) (c daemon.Config, ok bool, err error)
}

// These are the names of the rows that other rows are compared with.
const (
	direct   = "no proxy"
	ours     = "paceline"
	plain    = "ReverseProxy"
	bare     = "net/http server"
	limitReq = "nginx"
)

func peers() []peer {
	return []peer{
		{ours, "--limit", func(b *Config, t task, up *url.URL) (daemon.Config, bool, error) {
			args := []string{"proxy", "--to", up.String(), "--listen", "ADDRESS", "--admin", "off", "--log", "off"}
			switch t {
			case pass:
				args = append(args, "--limit", "none")
			case hold:
				args = append(args, "--limit", "1/h", "--max-wait", "100000h")
			case strict:
				args = append(args, "--limit", fmt.Sprintf("%d/s", Limit))
			}
			return daemon.Config{Program: b.Paceline, Args: args}, true, nil
		}},
		{plain, "", func(b *Config, t task, up *url.URL) (daemon.Config, bool, error) {
			return daemon.Config{Program: b.Self, Args: append(b.Peer, "ADDRESS", up.String())}, t == pass, nil
		}},
		{limitReq, "limit_req with delay", func(_ *Config, t task, up *url.URL) (daemon.Config, bool, error) {
			return nginx(up, map[task]string{hold: "rate=1r/m burst=20000",
				strict: fmt.Sprintf("rate=%dr/s burst=10000", Limit)}[t])
		}},
		{"nginx nodelay", "limit_req nodelay", func(_ *Config, t task, up *url.URL) (daemon.Config, bool, error) {
			c, _, err := nginx(up, fmt.Sprintf("rate=%dr/s burst=%d nodelay", Limit, Limit))
			return c, t == strict, err
		}},
		{"HAProxy", "http_req_rate(1s), deny",
			func(_ *Config, t task, up *url.URL) (daemon.Config, bool, error) { return haproxy(up, t) }},
	}
}

// bareServer is a server that holds connections and answers no request. The memory of the proxies
// is compared with its memory.
func bareServer(b *Config) daemon.Config {
	return daemon.Config{Program: b.Self, Args: append(b.Peer, "ADDRESS")}
}

func find(name string) (string, error) {
	for _, p := range []string{name, filepath.Join("/usr/sbin", name), filepath.Join("/usr/local/sbin", name)} {
		if path, err := exec.LookPath(p); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not installed", name)
}

// nginx is configured as its package is, with a worker for each core. It keeps connections to the
// server open and buffers nothing.
func nginx(up *url.URL, limit string) (daemon.Config, bool, error) {
	path, err := find("nginx")
	zone, use := "", ""
	if limit != "" {
		var rate, burst string
		_, _ = fmt.Sscanf(limit, "%s %s", &rate, &burst)
		zone, use = "limit_req_zone all zone=all:1m "+rate+";",
			"limit_req zone=all "+limit[len(rate)+1:]+"; limit_req_status 429;"
	}
	return daemon.Config{Program: path, Args: []string{"-p", "DIR", "-c", "DIR/conf", "-e", "DIR/error.log"},
		Conf: `daemon off; worker_processes auto; pid DIR/pid; error_log DIR/error.log crit;
worker_rlimit_nofile 65536;
events { worker_connections 30000; }
http {
  ` + zone + `
  access_log off; keepalive_timeout 1h; keepalive_requests 10000000; proxy_read_timeout 1h; send_timeout 1h;
  client_body_temp_path DIR/1; proxy_temp_path DIR/2; fastcgi_temp_path DIR/3; uwsgi_temp_path DIR/4; scgi_temp_path DIR/5;
  upstream server { server ` + up.Host + `; keepalive 256; keepalive_requests 10000000; }
  server {
    listen ADDRESS backlog=4096;
    location / { ` + use + ` proxy_pass http://server; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; }
  }
}
`}, true, err
}

// haproxy refuses the requests that are too many, since it cannot delay them. It can have requests
// wait for a connection that is in use.
func haproxy(up *url.URL, t task) (daemon.Config, bool, error) {
	path, err := find("haproxy")
	rules, server := "", ""
	switch t {
	case strict:
		rules = `
  stick-table type integer size 10 expire 1m store http_req_rate(1s)
  http-request track-sc0 int(1)
  http-request deny deny_status 429 if { sc_http_req_rate(0) gt ` + strconv.Itoa(Limit) + " }"
	case hold:
		server = " maxconn 1"
	}
	return daemon.Config{Program: path, Args: []string{"-db", "-f", "DIR/conf"}, Conf: `global
  no strict-limits
  maxconn 15000
defaults
  mode http
  option http-no-delay
  timeout client 1h
  timeout server 1h
  timeout queue 1h
  timeout connect 10s
  timeout http-keep-alive 1h
frontend in
  bind ADDRESS backlog 4096` + rules + `
  default_backend out
backend out
  http-reuse always
  server one ` + up.Host + server + "\n"}, true, err
}
