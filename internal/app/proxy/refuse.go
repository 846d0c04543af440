package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/send/outgoing"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/transport"
)

// refusal is the proxy's own answer, in place of an upstream's.
type refusal struct {
	status int
	// kind is the anchor in docs/proxy.md, and the reason in the log.
	kind, title, detail string

	limit  string        // the limit in the way
	wait   time.Duration // how long until the request could have gone; 0: not known
	ahead  int           // how many requests are before it
	fields [][2]string   // more header fields
	// judged means that a later attempt can succeed. Otherwise the client decides, unless pointless
	// says that another attempt does not help.
	judged, pointless bool
}

// Kinds is the page that explains the kinds of refusals.
const Kinds = "https://github.com/paceline-go/paceline/blob/main/docs/proxy.md#"

// mostRetry is the longest Retry-After that all SDKs respect. Some ignore a longer one and come
// back after half a second; others sleep for all of it.
const mostRetry = time.Minute

// problem is a body of RFC 9457. The error is for SDKs, which show its message.
type problem struct {
	Type     string    `json:"type"`
	Title    string    `json:"title"`
	Status   int       `json:"status"`
	Detail   string    `json:"detail"`
	Limit    string    `json:"limit,omitempty"`
	WaitMS   int64     `json:"wait_ms,omitempty"`
	Ahead    *int      `json:"ahead,omitempty"`
	Client   string    `json:"client,omitempty"`
	Upstream string    `json:"upstream,omitempty"`
	Error    forPeople `json:"error"`
}

type forPeople struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    string `json:"code"`
}

// refuse answers with a refusal.
func (v *visit) refuse(x *refusal) {
	v.failed = x
	h := v.w.Header()
	clear(h) // an unused answer of the upstream may have been copied
	v.tellWaited(h)
	v.forPage(h)
	if v.closes || v.proxy.heir.Load() != nil {
		h.Set("Connection", "close")
	}
	for _, f := range x.fields {
		h.Set(f[0], f[1])
	}
	if x.wait > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64(math.Ceil(x.wait.Seconds())), 10))
		h.Set("Retry-After-Ms", strconv.FormatInt(ceil(x.wait, time.Millisecond), 10))
	}
	switch {
	case x.pointless:
		h.Set("X-Should-Retry", "false")
	case x.judged:
		h.Set("X-Should-Retry", strconv.FormatBool(x.wait <= mostRetry && (!v.patience.stated || x.wait <= v.patience.own)))
	}
	if strings.HasPrefix(v.in.Header.Get("Content-Type"), "application/grpc") {
		v.refuseGRPC(x)
		return
	}
	p := problem{
		Type: Kinds + x.kind, Title: x.title, Status: x.status, Detail: x.detail, Limit: x.limit,
		WaitMS: ceil(x.wait, time.Millisecond),
		Error:  forPeople{"paceline: " + x.detail, "paceline_" + strings.ReplaceAll(x.kind, "-", "_"), x.kind},
	}
	if x.judged {
		p.Ahead = &x.ahead
	}
	if v.client != nil {
		p.Client = v.client.Name
	}
	if v.upstream != nil {
		p.Upstream = v.upstream.Name
	}
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // cannot fail: every field has a JSON form
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(b)+1))
	v.w.WriteHeader(x.status)
	_, _ = v.w.Write(append(b, '\n'))
}

// ceil is how many units a duration is, rounded up.
func ceil(d, unit time.Duration) int64 { return int64((d + unit - 1) / unit) }

// Statuses of gRPC.
const (
	grpcInvalidArgument   = 3
	grpcDeadlineExceeded  = 4
	grpcResourceExhausted = 8
	grpcUnimplemented     = 12
	grpcUnavailable       = 14
	grpcUnauthenticated   = 16
)

var grpcStatus = map[int]int{
	http.StatusBadRequest: grpcInvalidArgument, http.StatusMisdirectedRequest: grpcInvalidArgument,
	http.StatusRequestTimeout: grpcInvalidArgument,
	http.StatusUnauthorized:   grpcUnauthenticated, http.StatusNotFound: grpcUnimplemented,
	http.StatusGatewayTimeout:  grpcDeadlineExceeded,
	http.StatusTooManyRequests: grpcResourceExhausted, http.StatusRequestEntityTooLarge: grpcResourceExhausted,
}

// refuseGRPC answers in the form of gRPC over HTTP/2: a header that is a trailer at the same time.
func (v *visit) refuseGRPC(x *refusal) {
	h := v.w.Header()
	code, known := grpcStatus[x.status]
	if !known {
		code = grpcUnavailable
	}
	h.Set("Content-Type", v.in.Header.Get("Content-Type"))
	h.Set("Grpc-Status", strconv.Itoa(code))
	h.Set("Grpc-Message", grpcMessage(x.detail))
	if x.wait > 0 {
		h.Set("Grpc-Retry-Pushback-Ms", strconv.FormatInt(ceil(x.wait, time.Millisecond), 10))
	}
	v.w.WriteHeader(http.StatusOK)
	v.w.status = x.status // for the log
}

// grpcMessage encodes a message for a header field: all but plain ASCII as %XX.
func grpcMessage(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c >= ' ' && c <= '~' && c != '%' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

var errStopping = errors.New("the proxy is stopping")

// fail answers a request without an upstream's answer.
func (v *visit) fail(err error) {
	v.line.leave()
	if v.goesOn(err) {
		v.handOn()
		return
	}
	if x := v.why(err); x != nil {
		v.refuse(x)
		return
	}
	v.w.status, v.failed = statusGone, &refusal{kind: "client-gone"}
	if !v.sending.Load() && (v.line == nil || !v.line.states) { // a run that ends takes its requests back
		v.proxy.hangups.note(v)
	}
	panic(http.ErrAbortHandler) // the client is gone
}

// statusGone is the logged status of a client that went away.
const statusGone = 499

// why returns the reason of a failure, or nil if the client went away.
func (v *visit) why(err error) *refusal {
	if v.body != nil {
		v.body.mu.Lock()
		ended := v.body.err
		v.body.mu.Unlock()
		if long, ok := errors.AsType[*http.MaxBytesError](ended); ok {
			return tooLong(long.Limit)
		}
		switch ended {
		case errForm:
			return &refusal{status: http.StatusBadRequest, kind: "bad-body", title: "The body is malformed", pointless: true,
				detail: "the chunks of the body cannot be told apart", fields: [][2]string{{"Connection", "close"}}}
		case errStall:
			return &refusal{status: http.StatusRequestTimeout, kind: "body-stalled", title: "The body did not arrive",
				pointless: true,
				detail:    fmt.Sprintf("nothing of the body came for %v", v.proxy.config.Bounds.Stall),
				fields:    [][2]string{{"Connection", "close"}}}
		}
	}
	ctx := v.in.Context()
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errStopping):
		return stopping()
	case ctx.Err() != nil:
		return nil
	}
	if e, ok := errors.AsType[*transport.Error](err); ok {
		return v.noTurn(e)
	}
	said := v.said(err)
	if way, ok := errors.AsType[*outgoing.Error](err); ok && way.Refuses {
		return &refusal{status: http.StatusBadGateway, kind: "unreachable", title: "The upstream cannot be reached",
			detail: fmt.Sprintf("%s cannot be reached, and nothing was sent: %s", v.upstream.Name, said)}
	}
	if errors.Is(err, transport.ErrAttemptTimeout) {
		sent := "it may have served the request"
		if v.unsent {
			sent = "nothing was sent"
		}
		return &refusal{status: http.StatusGatewayTimeout, kind: "no-answer", title: "The upstream did not answer in time",
			detail: fmt.Sprintf("%s gave no answer within %v; %s", v.upstream.Name, v.upstream.AnswerTimeout, sent)}
	}
	if v.unsent || v.attempts == 0 {
		return &refusal{status: http.StatusBadGateway, kind: "unreachable", title: "The upstream cannot be reached",
			detail: fmt.Sprintf("%s cannot be reached, and nothing was sent: %s", v.upstream.Name, said)}
	}
	return &refusal{status: http.StatusBadGateway, kind: "cut-off", title: "The upstream gave no whole answer",
		detail: fmt.Sprintf("%s gave no answer, and may have served the request: %s", v.upstream.Name, said)}
}

// said is the text of an error, without the values of keys. Of an error of the proxy on the way out
// it is what is wrong with that.
func (v *visit) said(err error) string {
	at := wholeOf(v.in.URL)
	if !v.whole {
		at = v.upstream.outgoing(v.in.URL)
	}
	if way := v.proxy.config.proxies.Blame(at, err); way != nil {
		err = way
	}
	text, _ := v.upstream.secrets.Hide([]byte(err.Error()), secret.Whole)
	return string(text)
}

// noTurn says why a request was not sent.
func (v *visit) noTurn(e *transport.Error) *refusal {
	x := &refusal{status: http.StatusTooManyRequests, judged: true}
	if !e.Ready.IsZero() {
		x.wait = max(time.Until(e.Ready), time.Millisecond)
	}
	x.limit, x.ahead = e.Name, e.Ahead
	w, ok := errors.AsType[*paceline.WaitError](e.Err)
	if ok {
		v.waitsMore(paceline.WaitStats{Waited: w.Waited})
	}
	switch name := v.upstream.Name; {
	case errors.Is(e, transport.ErrOutage):
		x.outage(fmt.Sprintf("nothing arrives at %s: %s", name, strings.TrimPrefix(v.said(e.Err), "transport: ")))
	case errors.Is(e, paceline.ErrDeadline) && e.Name == outage:
		x.outage(fmt.Sprintf("nothing arrives at %s; it is tried again in %s, and this request would wait %s at most", name,
			inWords(x.wait), inWords(v.patience.most)))
	case errors.Is(e, transport.ErrKeys):
		x.status, x.kind, x.title, x.judged, x.pointless = http.StatusBadGateway, "no-key-left",
			"No key for the upstream is left", false, e.Ready.IsZero()
		x.detail = fmt.Sprintf("all keys for %s are out of use: %s", name, strings.TrimPrefix(v.said(e.Err), "transport: "))
	case errors.Is(e, transport.ErrPrice):
		x.status, x.kind, x.title, x.judged, x.pointless = http.StatusForbidden, "no-price",
			"What the request costs is not known", false, true
		x.detail = fmt.Sprintf("%s, and a limit of money holds for it; expected a price in the configuration (prices)",
			strings.TrimPrefix(v.said(e.Err), transport.ErrPrice.Error()+": "))
	case errors.Is(e, transport.ErrModel):
		x.status, x.kind, x.title, x.judged, x.pointless = http.StatusBadRequest, "no-model",
			"The model of the request is not known", false, true
		x.detail = fmt.Sprintf("each target of %s has its own names of models, and the model of this request is not known; expected a "+
			"body with a model that is not compressed and has %d bytes at most", name, v.proxy.config.Bounds.Kept)
	case errors.Is(e, transport.ErrPaused):
		x.kind, x.title = "paused", "The upstream asked to stay away"
		x.detail = fmt.Sprintf("%s asked to stay away for %s more (%v)", name, inWords(x.wait), e.Refusal)
	case errors.Is(e, paceline.ErrNever):
		x.status, x.kind, x.title, x.judged, x.pointless = http.StatusRequestEntityTooLarge, "never-fits",
			"The request is larger than the limit", false, true
		x.detail = fmt.Sprintf("%s asked for, and the limit of %s is %s", amount(e.Unit, e.Size, "are"), v.whoseLimit(e),
			amount(e.Unit, e.Limit, ""))
	case errors.Is(e, transport.ErrFull):
		x.kind, x.title = "too-many-keys", "Too many keys are in use"
		x.detail = fmt.Sprintf("what still counts of other keys of %s takes all of the memory that is set aside for it; "+
			"there is room in %s", name, inWords(x.wait))
		if e.Partition.Scope == transport.ScopeClient {
			x.detail = fmt.Sprintf("what still counts of other clients takes all of the memory that is set aside for it; "+
				"there is room in %s", inWords(x.wait))
		}
	case errors.Is(e, paceline.ErrFull):
		x.kind, x.title = "line-full", "Too many wait already"
		x.detail = fmt.Sprintf("%d requests of this client wait for %s already", x.ahead, name)
	case errors.Is(e, paceline.ErrDeadline) && e.Name == rested:
		x.kind, x.title, x.limit = "paused", "Requests are paused", ""
		x.detail = fmt.Sprintf("requests to %s are paused by the user of the proxy, until it says otherwise", name)
		if x.wait > 0 {
			x.detail = fmt.Sprintf("requests to %s are paused by the user of the proxy for %s more", name, inWords(x.wait))
		}
		x.detail += fmt.Sprintf("; this one would wait %s at most", inWords(v.patience.most))
	default:
		x.kind, x.title = "wait-too-long", "The wait for a turn would be too long"
		x.detail = fmt.Sprintf("the turn of this request at %s would come in %s, behind %d others, by the limit %s", name,
			inWords(x.wait), x.ahead, x.limit)
		if e.Partition.Scope == transport.ScopeClient {
			x.detail = fmt.Sprintf("%s has used up its own limit, %s; the turn of this request would come in %s, behind %d "+
				"others", v.whoseLimit(e), x.limit, inWords(x.wait), x.ahead)
		}
		if full, is := v.fullOf(e); is {
			x.detail = full
		}
		x.detail += fmt.Sprintf("; it would wait %s at most", inWords(v.patience.most))
		if w != nil && w.InVain() {
			x.detail = fmt.Sprintf("the request waited %s and had no turn at %s, by the limit %s of %s%s; %d others were ahead when "+
				"it came, and those in flight keep their places until they end", inWords(w.Waited), name, x.limit,
				v.whoseLimit(e), v.whereElse(), x.ahead)
		}
	}
	return x
}

// whoseLimit says whose limit stood in the way.
func (v *visit) whoseLimit(e *transport.Error) string {
	if e.Partition.Scope == transport.ScopeClient {
		return "client " + e.Partition.Client
	}
	return v.upstream.Name
}

// fullOf says that as many requests are in flight as a limit allows, and where. is is false for another limit.
func (v *visit) fullOf(e *transport.Error) (says string, is bool) {
	w, ok := errors.AsType[*paceline.WaitError](e.Err)
	if !ok || w.Rule.Counts != limit.CountsInFlight {
		return "", false
	}
	return fmt.Sprintf("as many requests of %s are in flight as the limit %s allows%s; the turn of this request would come when "+
		"some have ended, behind %d others", v.whoseLimit(e), e.Name, v.whereElse(), e.Ahead), true
}

// whereElse says that a limit is that of a store, if it is.
func (v *visit) whereElse() string {
	if v.proxy.config.Shared == nil {
		return ""
	}
	return ", here or in other processes of the store"
}

// amount writes an amount of a unit, with a verb after it. Money is in millionths of a dollar.
func amount(u limit.Unit, n int64, verb string) string {
	text := fmt.Sprintf("%d %v", n, u)
	if u == limit.Money {
		text = strconv.FormatFloat(float64(n)/1e6, 'f', -1, 64) + " USD"
		verb = strings.Replace(verb, "are", "may be", 1)
	}
	return strings.TrimSpace(text + " " + verb)
}

// The names of what is no limit of a server: nothing reaches it, and a user has paused it.
const (
	outage = "outage"
	rested = "rest"
)

func (x *refusal) outage(detail string) {
	x.status, x.kind, x.title, x.detail, x.limit = http.StatusServiceUnavailable, "outage", "The upstream is down",
		detail, ""
}

// inWords writes a duration for people.
func inWords(d time.Duration) string {
	switch {
	case d == 0:
		return "no time"
	case d < 10*time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

func noKey() *refusal {
	return &refusal{status: http.StatusUnauthorized, kind: "no-key", title: "The proxy does not know this key",
		pointless: true,
		detail:    "no key for this proxy is in " + strings.Join(keyFields[:], ", ") + ", nor in a parameter such as api_key",
		fields:    [][2]string{{"WWW-Authenticate", `Bearer realm="paceline"`}}}
}

func noUpstream(all routes) *refusal {
	detail := "no upstream has this path"
	if paths := all.paths(); paths != "" {
		detail += "; there are " + paths
	}
	return &refusal{status: http.StatusNotFound, kind: "no-upstream", title: "No upstream has this path", detail: detail,
		pointless: true}
}

func tooLong(most int64) *refusal {
	return &refusal{status: http.StatusRequestEntityTooLarge, kind: "body-too-long", title: "The body is too long",
		pointless: true,
		detail:    fmt.Sprintf("the body of a request may have %d bytes", most), fields: [][2]string{{"Connection", "close"}}}
}

func badField(err error) *refusal {
	return &refusal{status: http.StatusBadRequest, kind: "bad-field", title: "A header field is wrong",
		detail: err.Error(), pointless: true}
}

// untilNext is how long a client should wait for the next process, if it knows nothing better.
const untilNext = time.Second

func stopping() *refusal {
	return &refusal{status: http.StatusServiceUnavailable, kind: "stopping", title: "The proxy is stopping",
		detail: "the proxy is being stopped; the request was not sent", wait: untilNext,
		fields: [][2]string{{"Connection", "close"}}}
}
