//go:build unix

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/capture"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

// often says in which runs a program is tried.
type often int

const (
	always often = iota // in ./check
	inCI                // it starts slowly, or needs packages that .ci/run installs
	long                // with PACELINE_LONG
)

// captured marks programs that heed no variable, or not those of certificates.
const captured = ", captured"

type unchangedProgram struct {
	name, needs string
	script      string // of needs: a shell's for programs
	often       often
	asMany      bool // as it makes; otherwise 30
	serves      func(t *testing.T, dir, site string) http.Handler
}

// unchanged are programs that know nothing of paceline. Where they stand in a script: WHERE is the
// server's address with a number to come, SITE its address alone, NAME the host example.com,
// and DIR a folder.
var unchanged = []unchangedProgram{
	{"curl", "curl", `curl -sf $(seq -f 'WHERE%g' 0 29) >/dev/null`, always, false, nil},
	{"curl, h1", "curl", `curl --http1.1 -sf $(seq -f 'WHERE%g' 0 29) >/dev/null`, inCI, false, nil},
	{"wget", "wget", `wget -q -O/dev/null $(seq -f 'WHERE%g' 0 29)`, always, false, nil},
	{"node fetch", "node", `Promise.all(Array.from({length:30},(_,i)=>fetch('WHERE'+i).then(r=>{if(!r.ok)throw r.status}))).catch(e=>{console.error(e);process.exit(1)})`, always, false, nil},
	{"node https", "node", `for(let i=0;i<30;i++)require('https').get('WHERE'+i,r=>{r.resume();if(r.statusCode!=200)process.exit(1)})`, always, false, nil},
	{"undici", "node", `const {request}=require('MODULES/undici');Promise.all(Array.from({length:30},(_,i)=>request('WHERE'+i).then(r=>{if(r.statusCode!=200)throw r.statusCode;return r.body.text()}))).catch(e=>{console.error(e);process.exit(1)})`, inCI, false, nil},
	{"axios", "node", `const axios=require('MODULES/axios');(async()=>{for(let i=0;i<30;i++)await axios.get('WHERE'+i)})().catch(e=>{console.error(e.code);process.exit(1)})`, inCI, false, nil},
	{"got", "node", `import('MODULES/got/dist/source/index.js').then(async({default:got})=>{for(let i=0;i<30;i++)await got('WHERE'+i,{retry:{limit:0}})}).catch(e=>{console.error(e);process.exit(1)})`, inCI, false, nil},
	{"ws", "node", `const W=require('MODULES/ws');(async()=>{for(let i=0;i<30;i++)await new Promise((y,n)=>{const w=new W('WHERE'.replace('https','wss')+i);w.on('error',n);w.on('open',()=>w.terminate());w.on('close',y)})})().catch(e=>{console.error(e);process.exit(1)})`, inCI, false, webSockets},
	{"openai for Node", "node", `const {OpenAI}=require('MODULES/openai');const ai=new OpenAI({apiKey:'sk-x',baseURL:'SITE/v1',maxRetries:0});(async()=>{for(let i=0;i<30;i++)await ai.models.retrieve('m')})().catch(e=>{console.error(e);process.exit(1)})`, inCI, true, texts(map[string]string{"/v1/models/m": `{"id":"m","object":"model"}`})},
	{"S3 for Node", "node", `const {S3Client,PutObjectCommand,GetObjectCommand}=require('MODULES/@aws-sdk/client-s3');const s3=new S3Client({region:'x',endpoint:'SITE',forcePathStyle:true,maxAttempts:1,credentials:{accessKeyId:'a',secretAccessKey:'b'}});(async()=>{for(let i=0;i<15;i++){await s3.send(new PutObjectCommand({Bucket:'b',Key:'k'+i,Body:'v'}));await (await s3.send(new GetObjectCommand({Bucket:'b',Key:'k'+i}))).Body.transformToString()}})().catch(e=>{console.error(e);process.exit(1)})`, long, true, signed},
	{"octokit.paginate", "node more", `import('MODULES/@octokit/rest/dist-src/index.js').then(async({Octokit})=>{const o=new Octokit({auth:'x',baseUrl:'SITE'});const all=await o.paginate('GET /orgs/{org}/repos',{org:'o'});if(all.length!=30)throw all.length}).catch(e=>{console.error(e);process.exit(1)})`, long, true, pagesOf30},
	{"ccxt", "node more", `import('MODULES/ccxt/js/ccxt.js').then(async({default:ccxt})=>{const x=new ccxt.kraken({enableRateLimit:false});for(let i=0;i<30;i++)await x.fetch('WHERE'+i)}).catch(e=>{console.error(e);process.exit(1)})`, long, false, nil},
	{"npm", "npm", `mkdir DIR/in && cd DIR/in && echo '{}' >package.json && npm install --no-audit --no-fund --registry https://NAME/ a0 a1 a2 a3 a4 && test -f node_modules/a4/package.json`, long, true, registry},
	{"requests", "python3-requests", "import requests\ns=requests.Session()\nfor i in range(30): s.get('WHERE%d'%i,timeout=60).raise_for_status()", always, false, nil},
	{"httpx", "python3-httpx", "import httpx\nc=httpx.Client(timeout=60)\nfor i in range(30): c.get('WHERE%d'%i).raise_for_status()", inCI, false, nil},
	{"httpx, all at once", "python3-httpx", "import httpx,asyncio\nasync def main():\n  async with httpx.AsyncClient(timeout=60) as c:\n    for r in await asyncio.gather(*[c.get('WHERE%d'%i) for i in range(30)]): r.raise_for_status()\nasyncio.run(main())", inCI, false, nil},
	{"urllib", "python3-ssl", "import urllib.request\nfor i in range(30): urllib.request.urlopen('WHERE%d'%i).read()", always, false, nil},
	{"aiohttp", "python3-aiohttp", "import aiohttp,asyncio\nasync def main():\n  async with aiohttp.ClientSession(trust_env=True) as s:\n    for i in range(30):\n      async with s.get('WHERE%d'%i) as r: assert r.status==200\nasyncio.run(main())", inCI, false, nil},
	{"boto3", "python3-boto3", "import boto3\ns3=boto3.client('s3',endpoint_url='SITE',region_name='x',aws_access_key_id='a',aws_secret_access_key='b')\nfor i in range(15):\n  s3.put_object(Bucket='b',Key='k%d'%i,Body=b'v')\n  s3.get_object(Bucket='b',Key='k%d'%i)['Body'].read()", inCI, true, signed},
	{"httplib2", "python3-httplib2", "import httplib2\nh=httplib2.Http()\nfor i in range(30): assert h.request('WHERE%d'%i)[0].status==200", long, false, nil},
	{"grpcio", "python3-grpc", "import grpc\nc=grpc.secure_channel('NAME:443',grpc.ssl_channel_credentials())\nask=c.unary_unary('/pkg.Service/Method')\nfor i in range(30): assert ask(b'x',timeout=60)==b'answer'", long, true, grpcUnary},
	{"pip", "python3-pip", "import subprocess,sys\nsubprocess.check_call([sys.executable,'-m','pip','download','-q','--disable-pip-version-check','--no-cache-dir','-d','DIR/in','--index-url','SITE/simple/']+['w%d'%i for i in range(5)])", long, true, wheels},
	{"HTTPie", "http", `for i in 0 1 2; do http --check-status --ignore-stdin GET "WHERE$i" >/dev/null || exit 1; done`, long, true, nil},
	{"git clone", "git", `git clone -q SITE/repo.git DIR/in && test -f DIR/in/9`, inCI, true, repository},
	{"apt", "apt-get", `mkdir -p DIR/in/lists/partial DIR/in/cache && echo 'deb [trusted=yes] SITE ./' >DIR/in/sources.list && apt-get update -qq -o Dir::Etc::SourceList=DIR/in/sources.list -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists=DIR/in/lists -o Dir::Cache=DIR/in/cache && grep -rq 'Package: hello' DIR/in/lists`, long, true, texts(map[string]string{"/Packages": "Package: hello\nVersion: 1\nArchitecture: all\nMaintainer: x\nFilename: ./hello.deb\nSize: 1\nSHA256: 00\nDescription: x\n", "/Release": "Date: Thu, 01 Jan 2026 00:00:00 UTC\n"})},
	{"php curl", "php", `for($i=0;$i<30;$i++){$c=curl_init('WHERE'.$i);curl_setopt($c,CURLOPT_RETURNTRANSFER,true);if(curl_exec($c)===false||curl_getinfo($c,CURLINFO_HTTP_CODE)!=200){fwrite(STDERR,curl_error($c));exit(1);}}`, long, false, nil},
	{"perl LWP", "perl", `use LWP::UserAgent; my $u=LWP::UserAgent->new(env_proxy=>1); for my $i (0..29){my $r=$u->get("WHERE$i"); $r->is_success or die $r->status_line}`, long, false, nil},
	{"ruby net/http", "ruby", `require 'net/http'; 30.times{|i| r=Net::HTTP.get_response(URI("https://NAME/?id=#{i}")); exit 1 unless r.code=='200'}`, long, false, nil},
	{"gh", "gh", `for i in 0 1 2 3 4; do GH_TOKEN=x GH_NO_UPDATE_NOTIFIER=1 gh api --paginate "https://NAME/orgs/o/repos" >/dev/null || exit 1; done`, long, true, pagesOf30},
	{"Go net/http", "go", `package main

import (
	"fmt"
	"net/http"
)

func main() {
	for i := range 30 {
		if r, err := http.Get(fmt.Sprint("https://NAME/?id=", i)); err != nil || r.StatusCode != 200 {
			panic(err)
		}
	}
}
`, inCI, false, nil},
	{"rclone", "rclone", `rclone --config DIR/none copy --retries 1 --http-url https://NAME/ :http: DIR/in && test -f DIR/in/9`, long, true, fileTree},
	{"Java HttpClient", "java", "Client", inCI, false, nil},
	{"Java URLConnection", "java", "Old", inCI, false, nil},
	{"aiohttp without trust_env" + captured, "python3-aiohttp", "import aiohttp,asyncio\nasync def main():\n  async with aiohttp.ClientSession() as s:\n    for i in range(30):\n      async with s.get('WHERE%d'%i) as r: assert r.status==200\nasyncio.run(main())", inCI, false, nil},
	{"Python websockets" + captured, "python3-websockets", "import asyncio,websockets\nasync def main():\n  for i in range(30):\n    async with websockets.connect('WHERE'.replace('https','wss')+str(i),close_timeout=0.1) as w: pass\nasyncio.run(main())", long, false, webSockets},
	{"perl LWP without env_proxy" + captured, "perl", `use LWP::UserAgent; my $u=LWP::UserAgent->new; for my $i (0..29){my $r=$u->get("WHERE$i"); $r->is_success or die $r->status_line}`, long, false, nil},
	{"php file_get_contents" + captured, "php", `for($i=0;$i<30;$i++){if(file_get_contents('WHERE'.$i)===false)exit(1);}`, long, false, nil},
	{"aria2" + captured, "aria2c", `for i in $(seq 0 29); do echo "WHERE$i"; echo " out=$i"; done >DIR/list && aria2c -q --async-dns=false -i DIR/list -d DIR/in && test -s DIR/in/29`, long, true, nil},
	{"Go without Proxy" + captured, "go", `package main

import (
	"fmt"
	"net/http"
)

func main() {
	c := &http.Client{Transport: &http.Transport{}}
	for i := range 30 {
		r, err := c.Get(fmt.Sprint("https://NAME/?id=", i))
		if err != nil || r.StatusCode != 200 {
			panic(err)
		}
		r.Body.Close()
	}
}
`, inCI, false, nil},
}

// javaClients are two programs of Java, each a file that java runs.
var javaClients = map[string]string{
	"Client.java": `import java.net.URI; import java.net.http.*;
public class Client { public static void main(String[] a) throws Exception {
  var c = HttpClient.newHttpClient();
  for (int i = 0; i < 30; i++) { var r = c.send(HttpRequest.newBuilder(URI.create(a[0] + i)).build(), HttpResponse.BodyHandlers.ofString());
    if (r.statusCode() != 200) System.exit(1); } } }`,
	"Old.java": `import java.net.*;
public class Old { public static void main(String[] a) throws Exception {
  for (int i = 0; i < 30; i++) { var c = (HttpURLConnection) new URL(a[0] + i).openConnection();
    if (c.getResponseCode() != 200) System.exit(1); c.getInputStream().readAllBytes(); } } }`,
}

// commandOf is the command line of a script, which needs a program, a module of Python, or packages of
// Node.
func commandOf(t *testing.T, dir, needs, script string) []string {
	t.Helper()
	if module, ok := strings.CutPrefix(needs, "python3-"); ok {
		return []string{need.Python(t, module), "-c", script}
	}
	switch needs {
	case "node", "node more":
		folder := nodeClients
		if needs != "node" {
			folder = moreOfNode
		}
		node := need.Program(t, "node")
		if strings.Contains(script, "MODULES") {
			node = need.Node(t, folder)
		}
		modules, err := filepath.Abs(filepath.Join(folder, "node_modules"))
		if err != nil {
			t.Fatal(err)
		}
		return []string{node, "-e", strings.ReplaceAll(script, "MODULES", modules)}
	case "java":
		source, known := javaClients[script+".java"]
		if !known { // it is a program by itself
			source, script = script, "Program"
		}
		file := filepath.Join(dir, script+".java")
		if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
		return []string{need.Program(t, "java"), file}
	case "go":
		file := filepath.Join(dir, "main.go")
		if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
			t.Fatal(err)
		}
		mustRun(t, dir, "go", "build", "-o", "program", "main.go")
		return []string{filepath.Join(dir, "program")}
	case "php":
		return []string{need.Program(t, "php"), "-r", script}
	case "perl", "ruby":
		return []string{need.Program(t, needs), "-e", script}
	}
	need.Program(t, needs)
	return []string{"sh", "-c", script}
}

// run runs the program within the limit of a strict server, to which it sends count requests, if it is one of
// those that send 30. It returns how many were served, and the server.
func (p *unchangedProgram) run(t *testing.T, count int) (served int, s *lawful) {
	t.Helper()
	script := strings.NewReplacer("30", fmt.Sprint(count), "29", fmt.Sprint(count-1)).Replace(p.script)
	dir := openFolder(t)
	s, ca := strictTLS(t)
	s.anyURL()
	to, host, env := s.URL, strings.TrimPrefix(s.URL, "https://"), "HTTPS_PROXY="
	if strings.Contains(p.script, "NAME") {
		to, host, env = "https://example.com", "example.com", "HTTPS_PROXY="+proxyTo(t, s)
	}
	if p.serves != nil {
		h := p.serves(t, filepath.Join(dir, "site"), to)
		s.more = func(w http.ResponseWriter, r *http.Request, _ int) bool { h.ServeHTTP(w, r); return true }
	}
	args := commandOf(t, dir, p.needs,
		strings.NewReplacer("WHERE", s.URL+"/?id=", "SITE", s.URL, "NAME", host, "DIR", dir).Replace(script))
	if p.needs == "java" {
		args = append(args, s.URL+"/?id=")
	}
	var by []string
	if strings.HasSuffix(p.name, captured) {
		by = []string{"--capture"}
		if _, _, err := capture.Command(""); err != nil {
			t.Skip(err) // no package brings namespaces
		}
	}
	c := program(t, slices.Concat([]string{"exec"}, by, []string{"--to", to, "--limit", "20/s", "--ca-file", ca, "--"}, args)...)
	c.Env = append(c.Env, "TMPDIR="+openFolder(t), "HOME="+dir, env)
	if to != s.URL { // another HTTPS_PROXY than that of the other runs' daemon
		c.Env = append(c.Env, "XDG_RUNTIME_DIR="+dir, "XDG_STATE_HOME="+dir)
	}
	stuck := time.AfterFunc(patient, func() { _ = c.Process.Kill() })
	out, err := c.CombinedOutput()
	stuck.Stop()
	refused, passed := s.told()
	if err != nil || len(refused) > 0 || passed == 0 || passed != count && !p.asMany {
		t.Errorf("%v: %d served, refused: %v\n%s", err, passed, refused, out)
	}
	for id := range passed {
		if n := s.times(id); n != 1 {
			t.Errorf("%d was served %d times", id, n)
		}
	}
	if !strings.Contains(string(out), fmt.Sprintf("%d requests to %s, 0 refused", passed, host)) {
		t.Errorf("it says %q", out)
	}
	return passed, s
}

// Each program, as it is, is refused nothing by a strict server, and each of its requests is served
// once. ./check runs those that start quickly, CI more, and PACELINE_LONG all of them.
func TestExecPrograms(t *testing.T) {
	t.Parallel()
	race.Without(t)
	var served, tried atomic.Int64
	t.Cleanup(func() {
		t.Logf("%d of %d", served.Load(), len(unchanged))
		if need.Long() && need.Whole() && served.Load() < tried.Load() {
			t.Errorf("%d of %d that were tried", served.Load(), tried.Load())
		}
	})
	for _, p := range unchanged {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			switch p.often {
			case inCI:
				need.WholeOnly(t, "it starts slowly")
			case long:
				need.LongOnly(t, "ten others are in CI")
			}
			tried.Add(1)
			passed, _ := p.run(t, 30)
			if !t.Failed() {
				served.Add(1)
				t.Logf("%d requests", passed)
			}
		})
	}
}

// openFolder is a folder that other users may enter: apt reads as one of its own.
func openFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "paceline-programs-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// proxyTo is a proxy by which every host is the server. Programs in Go reach no address of this
// machine by a proxy.
func proxyTo(t *testing.T, s *lawful) string {
	t.Helper()
	p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		there, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		here, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer here.Close()
		defer there.Close()
		io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
		go func() {
			io.Copy(there, rw)
			there.Close()
		}()
		io.Copy(here, there)
	}))
	t.Cleanup(p.Close)
	return p.URL
}

// A setting that counts for more than the environment is an error before the program starts.
func TestExecOverridden(t *testing.T) {
	t.Parallel()
	race.Without(t)
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".curlrc"), []byte("silent\nproxy = http://corp:3128\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := program(t, "exec", "--to", "https://api.example.com", "--limit", "20/s", "--", "sh", "-c", "echo started")
	c.Env = append(c.Env, "HOME="+home, "TMPDIR="+home)
	out, err := c.CombinedOutput()
	if err == nil || strings.Contains(string(out), "started") || !strings.Contains(string(out), filepath.Join(home, ".curlrc")+":2: proxy") {
		t.Errorf("%v: %s", err, out)
	}
}
