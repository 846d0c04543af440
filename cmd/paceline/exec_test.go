//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/keeper"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

// strictTLS is a server of 20 a second over TLS, and the file of its certificate.
func strictTLS(t *testing.T) (s *lawful, ca string) {
	t.Helper()
	s = newLawfulBy(t, 20, time.Second, (*httptest.Server).StartTLS)
	return s, write(t, "server.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
}

// execs runs a program under paceline exec, and returns its standard output and error.
func execs(t *testing.T, s *lawful, ca string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	c := program(t, append([]string{"exec", "--to", s.URL, "--limit", "20/s", "--ca-file", ca}, args...)...)
	c.Env = append(c.Env, "TMPDIR="+t.TempDir(), "HOME="+t.TempDir())
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err = c.Run() // ends when the daemon has written its line, too: it has the same standard error
	return out.String(), errs.String(), err
}

// unchanged are programs that send 30 requests, and know nothing of paceline. URL is the server's
// address, with a number to come.
var unchanged = []struct {
	name, needs string
	args        []string
	more        bool // only in CI
}{
	{"curl", "curl", []string{"sh", "-c", `curl -sf $(seq -f 'URL%g' 0 29) >/dev/null`}, false},
	{"curl, h1", "curl", []string{"sh", "-c", `curl --http1.1 -sf $(seq -f 'URL%g' 0 29) >/dev/null`}, true},
	{"wget", "wget", []string{"sh", "-c", `wget -q -O/dev/null $(seq -f 'URL%g' 0 29)`}, false},
	{"node fetch", "node", []string{"node", "-e", `Promise.all(Array.from({length:30},(_,i)=>fetch('URL'+i).then(r=>{if(!r.ok)throw r.status}))).catch(e=>{console.error(e);process.exit(1)})`}, false},
	{"node https", "node", []string{"node", "-e", `for(let i=0;i<30;i++)require('https').get('URL'+i,r=>{r.resume();if(r.statusCode!=200)process.exit(1)})`}, false},
	{"requests", "python3-requests", []string{"python3", "-c", "import requests\ns=requests.Session()\nfor i in range(30): s.get('URL%d'%i,timeout=60).raise_for_status()"}, false},
	{"httpx", "python3-httpx", []string{"python3", "-c", "import httpx\nc=httpx.Client(timeout=60)\nfor i in range(30): c.get('URL%d'%i).raise_for_status()"}, false},
	{"httpx, all at once", "python3-httpx", []string{"python3", "-c", "import httpx,asyncio\nasync def main():\n  async with httpx.AsyncClient(timeout=60) as c:\n    for r in await asyncio.gather(*[c.get('URL%d'%i) for i in range(30)]): r.raise_for_status()\nasyncio.run(main())"}, true},
	{"urllib", "python3-requests", []string{"python3", "-c", "import urllib.request\nfor i in range(30): urllib.request.urlopen('URL%d'%i).read()"}, false},
	{"aiohttp", "python3-aiohttp", []string{"python3", "-c", "import aiohttp,asyncio\nasync def main():\n  async with aiohttp.ClientSession(trust_env=True) as s:\n    for i in range(30):\n      async with s.get('URL%d'%i) as r: assert r.status==200\nasyncio.run(main())"}, true},
	{"Java HttpClient", "java", []string{"java", "JAVA/Client.java", "URL"}, true},
	{"Java URLConnection", "java", []string{"java", "JAVA/Old.java", "URL"}, true},
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

// Each program, as it is, is refused nothing by a strict server, and each of its requests is served
// once. CI runs all of them, ./check those that start quickly.
func TestExecPrograms(t *testing.T) {
	t.Parallel()
	race.Without(t)
	for _, p := range unchanged {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			if p.more {
				need.WholeOnly(t, "it starts slowly")
			}
			args := append([]string{"--"}, p.args...)
			switch module, isPython := strings.CutPrefix(p.needs, "python3-"); {
			case isPython:
				args[1] = need.Python(t, module)
			default:
				need.Program(t, p.needs)
			}
			dir := t.TempDir()
			for name, text := range javaClients {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			s, ca := strictTLS(t)
			for i := range args {
				args[i] = strings.NewReplacer("URL", s.URL+"/?id=", "JAVA", dir).Replace(args[i])
			}
			_, stderr, err := execs(t, s, ca, args...)
			if err != nil {
				t.Errorf("%v\n%s", err, stderr)
			}
			refused, passed := s.told()
			if len(refused) > 0 || passed != 30 {
				t.Errorf("%d served, refused: %v\n%s", passed, refused, stderr)
			}
			for id := range passed {
				if n := s.times(id); n != 1 {
					t.Errorf("%d was served %d times", id, n)
				}
			}
			if !strings.Contains(stderr, "30 requests to "+strings.TrimPrefix(s.URL, "https://")+", 0 refused") {
				t.Errorf("it says %q", stderr)
			}
		})
	}
}

// The command is the program: its exit code, its process id for signals, its input. Afterwards
// nothing is left, whichever of the two was killed.
func TestExecIsTheProgram(t *testing.T) {
	t.Parallel()
	race.Without(t)
	s, ca := strictTLS(t)
	for script, want := range map[string]int{"exit 42": 42, "kill -TERM $$": -1, "true": 0} {
		_, stderr, err := execs(t, s, ca, "--", "sh", "-c", script)
		got := 0
		if e, ok := err.(*exec.ExitError); ok {
			got = e.ExitCode()
		}
		if got != want || !strings.Contains(stderr, "nothing of the program came") {
			t.Errorf("%s: exit %d, want %d: %v, %q", script, got, want, err, stderr)
		}
	}
	for args, want := range map[string]string{
		"-- nosuchprogram": "exit status 127", "-- /": "exit status 126", "": "exit status 2", "sh": "exit status 2",
		"--limit x -- true": "exit status 2", "--to http:// -- true": "exit status 2",
	} {
		_, stderr, err := execs(t, s, ca, strings.Fields(args)...)
		if err == nil || err.Error() != want || !strings.HasPrefix(stderr, "paceline") {
			t.Errorf("%q: %v, want %s: %q", args, err, want, stderr)
		}
	}
	stdout, _, err := execs(t, s, ca, "--quiet", "--summary", filepath.Join(t.TempDir(), "s.json"), "--", "sh", "-c", "echo $$; echo $PACELINE_TEST")
	if err != nil || stdout == "" {
		t.Error(stdout, err)
	}
}

// What the keeper alone needs is not in the program's environment, and a wrong environment is an error
// before the program starts.
func TestExecEnvironment(t *testing.T) {
	t.Parallel()
	race.Without(t)
	s, ca := strictTLS(t)
	dir := t.TempDir()
	summary := filepath.Join(dir, "summary.json")
	c := program(t, "exec", "--to", s.URL, "--limit", "20/s", "--ca-file", ca, "--key-env", "REAL_KEY", "-H", "Authorization: {key}", "--quiet",
		"--summary", "summary.json", "--", "sh", "-c", `env; curl -s -H 'Authorization: placeholder' "$0"`, s.URL+"/?id=0")
	c.Dir = dir // the daemon is in another folder
	c.Env = append(append(c.Env, ownDaemon(t)...), "TMPDIR="+dir, "HOME="+dir, "REAL_KEY=real-key-1234567")
	out, err := c.CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("real-key")) || !bytes.Contains(out, []byte("of 0")) {
		t.Errorf("%v\n%s", err, out)
	}
	for _, name := range []string{"HTTPS_PROXY=http://paceline:", "SSL_CERT_FILE=" + dir, "WGETRC=", "NODE_OPTIONS=", "JAVA_TOOL_OPTIONS="} {
		if !bytes.Contains(out, []byte(name)) {
			t.Errorf("no %s in the environment", name)
		}
	}
	var said keeper.Figures
	if b, err := os.ReadFile(summary); err != nil || json.Unmarshal(b, &said) != nil || said.Requests != 1 || said.Named != 1 {
		t.Errorf("%+v, %v", said, err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "paceline-exec-*"))
	if len(left) > 0 {
		t.Error("left behind:", left)
	}
	host := strings.TrimPrefix(s.URL, "https://")
	host, _, _ = strings.Cut(host, ":")
	c = program(t, "exec", "--to", s.URL, "--limit", "20/s", "--", "true")
	c.Env = append(c.Env, "NO_PROXY=localhost,"+host)
	if out, err = c.CombinedOutput(); err == nil || !bytes.Contains(out, []byte("NO_PROXY=localhost,"+host+" takes out "+host)) {
		t.Errorf("%v: %s", err, out)
	}
}

// The keeper was killed: the program's connections are refused, and the next run removes what is left.
func TestExecKilledKeeper(t *testing.T) {
	t.Parallel()
	race.Without(t)
	need.Program(t, "curl")
	if runtime.GOOS != "linux" {
		t.Skip("it looks for the keeper in /proc")
	}
	s, ca := strictTLS(t)
	dir := t.TempDir()
	c := program(t, "exec", "--apart", "--to", s.URL, "--limit", "20/s", "--ca-file", ca, "--", "sh", "-c",
		`for p in /proc/[0-9]*; do
			if tr '\0' ' ' 2>/dev/null <$p/cmdline | grep -q -- "--keeper $$ "; then kill -9 ${p#/proc/}; found=1; fi
		done; [ $found ] || exit 9; for i in 1 2 3 4 5 6 7 8 9; do curl -s "$0" && exit 8; done; exit 7`, s.URL+"/?id=0")
	c.Env = append(c.Env, "TMPDIR="+dir)
	out, err := c.CombinedOutput()
	if e, ok := err.(*exec.ExitError); !ok || e.ExitCode() != 7 {
		t.Fatalf("%v, expected 7: %s", err, out)
	}
	if _, passed := s.told(); passed > 0 {
		t.Error("a request went past the keeper")
	}
	left := func() []string { all, _ := filepath.Glob(filepath.Join(dir, "paceline-exec-*")); return all }
	if len(left()) != 1 {
		t.Fatal("the folder of a killed keeper is", left())
	}
	c = program(t, "exec", "--apart", "--to", s.URL, "--limit", "20/s", "--ca-file", ca, "--", "true")
	c.Env = append(c.Env, "TMPDIR="+dir)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	if len(left()) != 0 {
		t.Error("left behind:", left())
	}
}
