package paceaws_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// signers are the credentials of the program, which the server knows, too.
var signers = aws.Credentials{AccessKeyID: "AKIATEST", SecretAccessKey: "test", SessionToken: "session"}

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

const signedAt = "20060102T150405Z"

// options are the rules of a service: S3 does not encode paths again.
func options(service string) func(*v4.SignerOptions) {
	return func(o *v4.SignerOptions) { o.DisableURIPathEscaping = service == "s3" }
}

// wrong says why the signature of a request is not valid as it arrived; nil: it is.
func wrong(r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	at, err := time.Parse(signedAt, r.Header.Get("X-Amz-Date"))
	if err != nil {
		return err
	}
	got := r.Header.Get("Authorization")
	_, scope, _ := strings.Cut(got, "Credential=")
	scope, rest, _ := strings.Cut(scope, ", SignedHeaders=")
	fields, _, _ := strings.Cut(rest, ",")
	parts := strings.Split(scope, "/")
	if len(parts) != 5 {
		return fmt.Errorf("no signature: %q", got)
	}
	again := &http.Request{Method: r.Method, Host: r.Host, Header: http.Header{}, ContentLength: r.ContentLength,
		URL: &url.URL{Scheme: "https", Host: r.Host, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}}
	for name := range strings.SplitSeq(fields, ";") {
		if v := r.Header.Values(name); len(v) > 0 {
			again.Header[http.CanonicalHeaderKey(name)] = v
		}
	}
	sum := sha256.Sum256(body)
	err = v4.NewSigner().SignHTTP(context.Background(), signers, again, hex.EncodeToString(sum[:]), parts[3], parts[2], at, options(parts[3]))
	if want := again.Header.Get("Authorization"); err != nil || want != got {
		return fmt.Errorf("%s, want %s: %v", got, want, err)
	}
	return nil
}

// put is a signed request of S3 with a path and a query that must stay as they are, byte by byte.
func put(to string) (*http.Request, error) {
	const body = "what is kept"
	r, err := http.NewRequest("PUT", to+"/bucket/a%20b%2Bc/%E2%82%AC=(1)//d?x-id=PutObject&b=%20&a=", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(body))
	hash := hex.EncodeToString(sum[:])
	r.Header = http.Header{"X-Amz-Content-Sha256": {hash}, "X-Amz-Meta-Note": {"two  spaces"}, "Accept-Encoding": {"identity"}, "Content-Type": {"text/plain"}}
	return r, v4.NewSigner().SignHTTP(r.Context(), signers, r, hash, "s3", "us-east-1", time.Now(), options("s3"))
}

// TestSigningProgram is a program of TestSignedRequests: an official client, and a request by the official signer.
func TestSigningProgram(t *testing.T) {
	to := os.Getenv("PACELINE_TEST_SIGN_TO")
	if to == "" {
		t.Skip("it is a program of TestSignedRequests")
	}
	tr := &http.Transport{DisableCompression: true, Proxy: func(*http.Request) (*url.URL, error) {
		if at := os.Getenv("HTTPS_PROXY"); at != "" { // by itself Go passes proxies over for 127.0.0.1
			return url.Parse(at)
		}
		return nil, nil
	}}
	defer tr.CloseIdleConnections()
	client := &http.Client{Transport: tr}
	_, err := sts.NewFromConfig(aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(to), HTTPClient: client, Retryer: func() aws.Retryer { return aws.NopRetryer{} },
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return signers, nil }),
	}).GetCallerIdentity(t.Context(), nil)
	if err != nil {
		t.Error(err)
	}
	r, err := put(to)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if resp.Body.Close(); resp.StatusCode != 200 || err != nil {
		t.Errorf("%d %s %v", resp.StatusCode, text, err)
	}
}

// A request that was signed for its server is valid there through paceline exec, which leaves the Host, the path and all fields as they
// are. Behind a base URL it is signed for the proxy's address, and the server refuses it.
func TestSignedRequests(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("exec becomes its program, which Windows cannot do")
	}
	dir := t.TempDir()
	paceline := filepath.Join(dir, "paceline")
	build := exec.Command("go", "build", "-o", paceline, "./cmd/paceline")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var valid, refused atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := wrong(r); err != nil {
			refused.Add(1)
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		valid.Add(1)
		fmt.Fprint(w, identity)
	}))
	server.StartTLS()
	defer server.Close()
	file := filepath.Join(dir, "p.yaml")
	ca := filepath.Join(dir, "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config := fmt.Sprintf("version: 1\nadmin: 'off'\nlisten: 127.0.0.1:0\nupstreams:\n  - {to: %q, limits: [100/s], tls: {ca: ca.pem}}\n", server.URL)
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	program := []string{os.Args[0], "-test.run", "^TestSigningProgram$", "-test.v"}

	through := exec.Command(paceline, append([]string{"exec", "--config", file, "--"}, program...)...)
	place := []string{"XDG_RUNTIME_DIR=" + t.TempDir(), "XDG_STATE_HOME=" + t.TempDir()}
	through.Env = append(append(os.Environ(), place...), "PACELINE_TEST_SIGN_TO="+server.URL)
	defer func() {
		stop := exec.Command(paceline, "daemon", "stop", "--now")
		stop.Env = append(os.Environ(), place...)
		if out, err := stop.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}()
	if out, err := through.CombinedOutput(); err != nil || valid.Load() != 2 || refused.Load() != 0 || !bytes.Contains(out, []byte("2 requests to 127.0.0.1")) {
		t.Errorf("through exec %d are valid and %d refused: %v\n%s", valid.Load(), refused.Load(), err, out)
	}

	behind := exec.Command(paceline, "proxy", "--config", file)
	stderr, err := behind.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := behind.Start(); err != nil {
		t.Fatal(err)
	}
	defer behind.Wait() // its end is not what is tested
	defer behind.Process.Kill()
	lines := bufio.NewReader(stderr)
	greeting, err := lines.ReadString('\n')
	base := address.FindString(greeting)
	if base == "" {
		t.Fatalf("%q %v", greeting, err)
	}
	go io.Copy(io.Discard, lines) // until it ends
	valid.Store(0)
	signing := exec.Command(program[0], program[1:]...)
	signing.Env = append(os.Environ(), "PACELINE_TEST_SIGN_TO="+base, "HTTPS_PROXY=")
	if out, err := signing.CombinedOutput(); err == nil || valid.Load() != 0 || refused.Load() != 2 {
		t.Errorf("behind %s %d are valid and %d refused: %v\n%s", base, valid.Load(), refused.Load(), err, out)
	}
}
