//go:build unix

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

// nodeClients has the packages of Node that programs here need, and moreOfNode those of long forms.
const (
	nodeClients = "../../contrib/sdk/unchanged"
	moreOfNode  = "../../contrib/sdk/more"
)

// crowds are clients that send COUNT requests at once, each with a timeout for reading of TIMEOUT
// seconds. WHERE is the server's address, with a number to come. Each gets interim answers.
var crowds = []struct {
	name, needs string
	script      string
	long        bool // not in ./check
}{
	{"urllib", "python3-ssl", `
import urllib.request, concurrent.futures as c
def ask(i): assert urllib.request.urlopen('WHERE%d'%i, timeout=TIMEOUT).status==200
list(c.ThreadPoolExecutor(COUNT).map(ask, range(COUNT)))`, false},
	{"node fetch", "node", `
const {Agent, fetch} = require('MODULES/undici')
const dispatcher = new Agent({headersTimeout: TIMEOUT*1000, bodyTimeout: TIMEOUT*1000})
const ask = i => fetch('WHERE'+i, {dispatcher}).then(r => {if (!r.ok) throw r.status; return r.text()})
Promise.all(Array.from({length: COUNT}, (_, i) => ask(i))).catch(e => {console.error(e); process.exit(1)})`, true},
	{"requests", "python3-requests", `
import requests, concurrent.futures as c
def ask(i): requests.get('WHERE%d'%i, timeout=TIMEOUT).raise_for_status()
list(c.ThreadPoolExecutor(COUNT).map(ask, range(COUNT)))`, true},
	{"httpx", "python3-httpx", `
import httpx, asyncio
async def main():
  async with httpx.AsyncClient(timeout=httpx.Timeout(TIMEOUT, connect=60, pool=60), limits=httpx.Limits(max_connections=None)) as c:
    for r in await asyncio.gather(*[c.get('WHERE%d'%i) for i in range(COUNT)]): r.raise_for_status()
asyncio.run(main())`, true},
	{"aiohttp", "python3-aiohttp", `
import aiohttp, asyncio
async def main():
  t = aiohttp.ClientTimeout(total=None, sock_read=TIMEOUT)
  async with aiohttp.ClientSession(trust_env=True, timeout=t, connector=aiohttp.TCPConnector(limit=0)) as s:
    async def ask(i):
      async with s.get('WHERE%d'%i) as r: assert r.status==200
    await asyncio.gather(*[ask(i) for i in range(COUNT)])
asyncio.run(main())`, true},
	{"boto3", "python3-boto3", `
import boto3, concurrent.futures as c
from botocore.config import Config
s3 = boto3.client('s3', endpoint_url='WHERE'.split('/?')[0], region_name='x', aws_access_key_id='a', aws_secret_access_key='b',
  config=Config(read_timeout=TIMEOUT, retries={'total_max_attempts': 1}, max_pool_connections=COUNT, s3={'addressing_style': 'path'}))
def ask(i): assert s3.get_object(Bucket='b', Key='k%d'%i)['Body'].read()
list(c.ThreadPoolExecutor(COUNT).map(ask, range(COUNT)))`, true},
	{"openai for Node", "node", `
const {Agent, fetch} = require('MODULES/undici')
const {OpenAI} = require('MODULES/openai')
const dispatcher = new Agent({headersTimeout: TIMEOUT*1000, bodyTimeout: TIMEOUT*1000})
const ai = new OpenAI({apiKey: 'sk-x', baseURL: 'WHERE'.split('/?')[0], maxRetries: 0, fetch, fetchOptions: {dispatcher}})
Promise.all(Array.from({length: COUNT}, (_, i) => ai.get('/?id='+i))).catch(e => {console.error(e); process.exit(1)})`, true},
}

// Clients that send many requests at once are all served, although most of them wait for longer than
// the client's timeout for reading. Without interim answers those are given up.
func TestExecPatience(t *testing.T) {
	t.Parallel()
	race.Without(t)
	count, timeout, limit := 70, 3, int64(10)
	if need.Long() {
		count, timeout, limit = 160, 5, 20
	}
	for _, p := range crowds {
		t.Run(p.name, func(t *testing.T) {
			if !need.Long() { // else by itself
				t.Parallel()
			}
			if p.long {
				need.WholeOnly(t, "a crowd of each client")
			}
			for tries := 1; ; tries++ {
				s, ca := strictTLSOf(t, limit)
				s.anyURL()
				s.more = func(w http.ResponseWriter, _ *http.Request, id int) bool {
					w.Header().Set("Content-Type", "application/json")
					fmt.Fprintf(w, `{"id": %d}`, id)
					return true
				}
				script := strings.NewReplacer("COUNT", fmt.Sprint(count), "TIMEOUT", fmt.Sprint(timeout), "WHERE", s.URL+"/?id=").Replace(p.script)
				args := append([]string{"--"}, commandOf(t, t.TempDir(), p.needs, script)...)
				began := time.Now()
				_, stderr, err := execsAt(t, s, ca, fmt.Sprintf("%d/s", limit), args...)
				refused, passed := s.told()
				if len(refused) > 0 {
					t.Fatalf("refused: %v", refused)
				}
				if err == nil && passed == count {
					t.Logf("%d served in %v, timeouts of %d s", passed, time.Since(began).Round(time.Millisecond), timeout)
					break
				}
				// A busy machine may stop a client for as long as its timeout. Without interim answers each try fails.
				if tries == 3 || need.Long() {
					t.Fatalf("try %d: %d of %d served in %v: %v\n%s", tries, passed, count, time.Since(began), err, stderr)
				}
			}
		})
	}
}

// clientsOf are real clients, and what each makes of interim answers while it waits for longer than
// its timeout for reading: it is served or it fails. A client that passes over them without
// beginning its timeout anew fails, too. The table of internal/app/proxy/interim.go is by this one.
var clientsOf = []struct {
	name, needs, script string
	h2                  bool
	by100, by102        bool // served
	often               often
}{
	{"urllib", "python3-ssl", `
import urllib.request, ssl
print(urllib.request.urlopen('WHERE', timeout=1.2, context=ssl.create_default_context(cafile='CA')).read().decode())`, false, true, false, inCI},
	{"requests", "python3-requests", `
import requests
print(requests.get('WHERE', timeout=1.2, verify='CA').text)`, false, true, false, inCI},
	{"httpx", "python3-httpx", `
import httpx
print(httpx.Client(timeout=1.2, verify='CA').get('WHERE').text)`, false, true, true, inCI},
	{"httpx, h2", "python3-httpx, h2", `
import httpx
print(httpx.Client(timeout=1.2, verify='CA', http2=True).get('WHERE').text)`, true, true, true, inCI},
	{"aiohttp", "python3-aiohttp", `
import aiohttp, asyncio, ssl
async def main():
  async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None, sock_read=1.2)) as s:
    async with s.get('WHERE', ssl=ssl.create_default_context(cafile='CA')) as r: print(await r.text())
asyncio.run(main())`, false, true, true, inCI},
	{"boto3", "python3-boto3", `
import boto3
from botocore.config import Config
print(boto3.client('s3', endpoint_url='WHERE', verify='CA', region_name='x', aws_access_key_id='a', aws_secret_access_key='b',
  config=Config(read_timeout=1.2, retries={'total_max_attempts': 1}, s3={'addressing_style': 'path'})).get_object(Bucket='b', Key='k')['Body'].read().decode())`, false, true, false, inCI},
	{"undici", "node", `
const {Agent, fetch} = require('MODULES/undici')
fetch('WHERE', {dispatcher: new Agent({headersTimeout: 1200})}).then(r => r.text()).then(console.log)`, false, false, true, inCI},
	{"undici, h2", "node", `
const {Agent, fetch} = require('MODULES/undici')
fetch('WHERE', {dispatcher: new Agent({headersTimeout: 1200, allowH2: true})}).then(r => r.text()).then(console.log)`, true, true, true, inCI},
	{"node https", "node", `
const r = require('https').get('WHERE', {timeout: 1200}, r => r.on('data', b => console.log(String(b))))
r.on('timeout', () => process.exit(1))`, false, true, true, inCI},
	{"axios", "node", `
require('MODULES/axios').get('WHERE', {timeout: 1200}).then(r => console.log(r.data)).catch(e => {console.log(e.code); process.exit(1)})`, false, false, false, inCI}, // it bounds the whole request
	{"curl", "curl", "", false, false, false, inCI},
	{"Go", "go", goClient, false, false, false, inCI},
	{"Go, h2", "go", goClient, true, false, false, inCI},
	{"ruby", "ruby", `require 'net/http'
u = URI('WHERE')
Net::HTTP.start(u.host, u.port, use_ssl: true, ca_file: 'CA', read_timeout: 1.2, max_retries: 0) {|h| puts h.get('/').body}`, false, true, true, long},
	{"Java", "java", javaClient("HTTP_1_1"), false, false, false, inCI},
	{"Java, h2", "java", javaClient("HTTP_2"), true, false, false, inCI},
	{"grpcio", "python3-grpc", `
import grpc
c = grpc.secure_channel('WHERE'.split('//')[1], grpc.ssl_channel_credentials(open('CA', 'rb').read()))
print(c.unary_unary('/pkg.Service/Method')(b'x', timeout=20).decode())`, true, false, false, long}, // an interim answer is an error for it
}

// goClient is a program of Go with a timeout for the header of an answer.
const goClient = `package main

import ("crypto/tls"; "fmt"; "io"; "net/http"; "os"; "time")

func main() {
	t := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true, ResponseHeaderTimeout: 1200 * time.Millisecond}
	r, err := (&http.Client{Transport: t}).Get("WHERE")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	b, _ := io.ReadAll(r.Body)
	fmt.Println(string(b))
}
`

// javaClient is a program of Java, whose timeout is until the header of the final answer.
func javaClient(version string) string {
	return `import java.io.*; import java.net.*; import java.net.http.*; import java.security.*; import java.security.cert.*; import java.time.*; import javax.net.ssl.*;
class Program { public static void main(String[] a) throws Exception {
  KeyStore trust = KeyStore.getInstance(KeyStore.getDefaultType()); trust.load(null, null);
  trust.setCertificateEntry("a", CertificateFactory.getInstance("X.509").generateCertificate(new FileInputStream("CA")));
  TrustManagerFactory by = TrustManagerFactory.getInstance("PKIX"); by.init(trust);
  SSLContext context = SSLContext.getInstance("TLS"); context.init(null, by.getTrustManagers(), null);
  HttpClient c = HttpClient.newBuilder().sslContext(context).version(HttpClient.Version.` + version + `).build();
  System.out.println(c.send(HttpRequest.newBuilder(URI.create("WHERE")).timeout(Duration.ofMillis(1200)).build(), HttpResponse.BodyHandlers.ofString()).body());
} }`
}

// answerWhole is the final answer of the server of TestInterimClients.
func answerWhole(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Content-Type") != "application/grpc" {
		fmt.Fprint(w, "whole")
		return
	}
	w.Header().Set("Content-Type", "application/grpc")
	_, _ = w.Write([]byte("\x00\x00\x00\x00\x05whole"))
	w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
}

// A client that takes interim answers otherwise than the table has it is noticed.
func TestInterimClients(t *testing.T) {
	t.Parallel()
	race.Without(t)
	need.WholeOnly(t, "real clients")
	for _, c := range clientsOf {
		for status, want := range map[int]bool{100: c.by100, 102: c.by102} {
			t.Run(fmt.Sprintf("%s, %d", c.name, status), func(t *testing.T) {
				t.Parallel()
				if c.often == long {
					need.LongOnly(t, "none of its packages is in CI")
				}
				var mu sync.Mutex
				var agent, proto string
				s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					agent, proto = r.UserAgent(), r.Proto
					mu.Unlock()
					for range 6 {
						select {
						case <-time.After(400 * time.Millisecond):
							w.WriteHeader(status)
						case <-r.Context().Done():
							return
						}
					}
					answerWhole(w, r)
				}))
				s.EnableHTTP2 = c.h2
				ca := startTLS(t, s)
				script := strings.NewReplacer("WHERE", s.URL, "CA", ca).Replace(c.script)
				var args []string
				if c.name == "curl" {
					args = []string{need.Program(t, "curl"), "-sf", "-m", "1.2", "--cacert", ca, s.URL}
				} else {
					args = commandOf(t, t.TempDir(), c.needs, script)
				}
				seen := func() bool {
					mu.Lock()
					defer mu.Unlock()
					return proto != ""
				}
				var out []byte
				var err error
				for range 10 { // on a busy machine a client may give up before its connection is there
					p := exec.Command(args[0], args[1:]...)
					p.Env = append(p.Environ(), "NODE_EXTRA_CA_CERTS="+ca)
					if out, err = p.CombinedOutput(); seen() {
						break
					}
				}
				mu.Lock()
				defer mu.Unlock()
				if got := err == nil && strings.TrimSpace(string(out)) == "whole"; got != want || strings.HasPrefix(proto, "HTTP/2") != c.h2 {
					t.Errorf("%s (%s): served: %v, want %v: %v\n%s", agent, proto, got, want, err, out)
				}
			})
		}
	}
}

// connectAnew are programs that take a connection for each request, one after the other. Their own work of up to
// 30 ms decides how soon the first 20 arrive, and how evenly the others do. So the rate of all counts. They run alone.
var connectAnew = []string{"urllib", "ruby net/http", "php curl", "perl LWP", "php file_get_contents" + captured,
	"perl LWP without env_proxy" + captured}

// Crowds, and programs that send one request after the other, use a strict server in full: from the first
// arrival to the last, at least 99 % of what any client could get. It is for a machine that does nothing else:
//
//	PACELINE_LONG=1 go test ./cmd/paceline -run TestExecCeiling -parallel 3 -v
func TestExecCeiling(t *testing.T) {
	race.Without(t)
	need.LongOnly(t, "it measures the machine")
	const count, perSecond = 400, 20
	const ideal = (count - 1) / perSecond * time.Second // the first 20 at once, and each 20 as soon as they may
	inFull := func(t *testing.T, passed int, took time.Duration) {
		t.Helper()
		used := float64(ideal) / float64(took)
		t.Logf("%d served, %.1f %% of the ceiling", passed, 100*used)
		if used < 0.99 {
			t.Error("expected 99 % of the ceiling")
		}
	}
	for _, p := range crowds {
		if p.name != "httpx" && p.name != "node fetch" {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			s, ca := strictTLSOf(t, perSecond)
			script := strings.NewReplacer("COUNT", fmt.Sprint(count), "TIMEOUT", "60", "WHERE", s.URL+"/?id=").Replace(p.script)
			_, stderr, err := execs(t, s, ca, append([]string{"--"}, commandOf(t, t.TempDir(), p.needs, script)...)...)
			refused, passed := s.told()
			if err != nil || len(refused) > 0 || passed != count {
				t.Errorf("%v: %d served, %d refused\n%s", err, passed, len(refused), stderr)
			}
			inFull(t, passed, s.span())
		})
	}
	for _, p := range unchanged {
		if p.asMany || p.serves != nil || p.needs == "java" { // they send what they send
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			if slices.Contains(connectAnew, p.name) {
				passed, by := p.run(t, count)
				const evenly = (count - 1) * time.Second / perSecond
				used, windows := float64(evenly)/float64(by.span()), float64(ideal)/float64(by.since(perSecond-1))
				t.Logf("%d served, with a connection for each, at %.1f %% of 20/s; %.1f %% of the ceiling from the twentieth on", passed,
					100*used, 100*windows)
				if used < 0.99 || windows < 0.97 {
					t.Error("expected 99 % of 20/s, and 97 % of the ceiling from the twentieth on")
				}
				return
			}
			t.Parallel()
			passed, by := p.run(t, count)
			inFull(t, passed, by.span())
		})
	}
}
