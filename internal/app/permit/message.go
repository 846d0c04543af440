package permit

import (
	_ "embed"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/paceline-go/paceline/limit"
)

// Schema is the JSON schema of the messages.
//
//go:embed schema.json
var Schema string

const (
	// mostPermits is how many permits a call may be about.
	mostPermits = 1000
	// longestWait bounds max_wait and retry_after.
	longestWait = 366 * 24 * time.Hour
	// longestName is how many bytes the name of a client may have.
	longestName = 64
	// longestField is how many bytes a header field, with its name, may have.
	longestField = 16 << 10
	mostFields   = 256
)

// acquire is the message of /v1/acquire.
type acquire struct {
	limit   string
	client  string
	n       int
	cost    limit.Cost
	bounded bool // maxWait is given
	maxWait time.Duration
	settle  []settlement
	// credential is that of the request, for the limits of an upstream.
	credential string
}

// settlement is how one request ended, or several alike.
type settlement struct {
	ids        []permitID
	unread     int // ids that no server has given
	result     string
	metered    bool
	actual     limit.Cost
	retryAfter time.Duration
	status     int // with header, body and took, in place of a result
	header     http.Header
	body       string
	took       time.Duration
}

// results are the ends of a request, as programs report them.
var results = map[string]limit.Result{
	"accepted": limit.Accepted, "refused": limit.Limited, "failed": limit.Failed, "unsent": limit.Unsent,
	"unknown": limit.Unknown,
}

var resultWords = []string{"accepted", "refused", "failed", "unsent", "unknown"}

// limitName is a name of a limit. It needs no escape in a file or a URL.
var limitName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._:-]{0,63}$`)

// lineName is a name of a limit, or that of an upstream: its host, with a port and a path if it has some.
var lineName = regexp.MustCompile(`^[A-Za-z0-9_\[][A-Za-z0-9._:\]/%~@+#-]{0,254}$`)

// nameForms says in errors what limitName takes.
const nameForms = "a name of up to 64 letters, digits and . _ : -"

// checkClient says what is wrong with the name of a client. The empty name is one.
func checkClient(name string) error {
	if len(name) > longestName || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("%.80q, expected a name of up to %d bytes that can be printed", name, longestName)
	}
	return nil
}

var (
	acquireFields = []string{"limit", "client", "n", "cost", "max_wait", "settle", "credential"}
	settleFields  = []string{"id", "ids", "result", "actual", "retry_after", "status", "header", "body", "took_ms"}
)

// parseAcquire reads the message of /v1/acquire.
func parseAcquire(b []byte) (m acquire, err error) {
	s := &scanner{b: b}
	m.n, m.cost = 1, limit.One
	err = s.object(acquireFields, func(i int) (err error) {
		switch acquireFields[i] {
		case "limit":
			if m.limit, err = s.text(); err == nil && !lineName.MatchString(m.limit) {
				err = wrong("%.80q, expected %s, or the name of an upstream", m.limit, nameForms)
			}
		case "client":
			if m.client, err = s.text(); err == nil {
				if bad := checkClient(m.client); bad != nil {
					err = wrong("%v", bad)
				}
			}
		case "n":
			var n int64
			n, err = s.integer(1, mostPermits)
			m.n = int(n)
		case "cost":
			m.cost, err = s.cost()
		case "max_wait":
			m.bounded = true
			m.maxWait, err = s.seconds()
		case "settle":
			m.settle, err = s.settlements()
		case "credential":
			if m.credential, err = s.text(); err == nil && (len(m.credential) > longestField || strings.ContainsFunc(m.credential, unicode.IsControl)) {
				err = wrong("expected the value of a header field, of up to %d bytes", longestField)
			}
		}
		return err
	})
	if err == nil {
		err = s.end()
	}
	if err == nil && m.limit == "" {
		err = within("limit", wrong("the field is missing, expected the name of a limit"))
	}
	return m, err
}

// parseSettle reads the message of /v1/settle.
func parseSettle(b []byte) (all []settlement, err error) {
	s := &scanner{b: b}
	if all, err = s.settlements(); err == nil {
		err = s.end()
	}
	return all, err
}

// parseRenew reads the message of /v1/renew. unread is how many ids no server has given.
func parseRenew(b []byte) (ids []permitID, unread int, err error) {
	s := &scanner{b: b}
	if ids, unread, err = s.ids(); err == nil {
		err = s.end()
	}
	return ids, unread, err
}

func (s *scanner) settlements() (all []settlement, err error) {
	ids := 0
	err = s.array(mostPermits, func() error {
		m, err := s.settlement()
		if err != nil {
			return err
		}
		if ids += len(m.ids) + m.unread; ids > mostPermits {
			return wrong("more than %d ids in one call", mostPermits)
		}
		all = append(all, m)
		return nil
	})
	return all, err
}

func (s *scanner) settlement() (m settlement, err error) {
	var given [16]bool
	if err = s.object(settleFields, func(i int) (err error) {
		given[i] = true
		switch settleFields[i] {
		case "id":
			err = s.id(&m.ids, &m.unread)
		case "ids":
			m.ids, m.unread, err = s.ids()
		case "result":
			if m.result, err = s.textOf(resultWords); err == nil && !slices.Contains(resultWords, m.result) {
				err = wrong("%.80q, expected %s", m.result, strings.Join(resultWords, ", "))
			}
		case "actual":
			m.metered = true
			m.actual, err = s.cost()
		case "retry_after":
			m.retryAfter, err = s.seconds()
		case "status":
			var n int64
			n, err = s.integer(100, 999)
			m.status = int(n)
		case "header":
			m.header, err = s.header()
		case "body":
			m.body, err = s.text()
		case "took_ms":
			var ms float64
			ms, err = s.number(0, longestWait.Seconds()*1e3)
			m.took = time.Duration(ms * float64(time.Millisecond))
		}
		return err
	}); err != nil {
		return m, err
	}
	has := func(name string) bool { return given[slices.Index(settleFields, name)] }
	switch {
	case has("id") == has("ids"):
		return m, wrong("expected one of id and ids")
	case has("result") == has("status"):
		return m, wrong("expected one of result and status")
	case has("result") && (has("header") || has("body") || has("took_ms")):
		return m, wrong("header, body and took_ms go with a status, and here is a result")
	case has("retry_after") && m.result != "refused" && m.result != "failed":
		return m, within("retry_after", wrong("expected only beside the result refused or failed"))
	}
	return m, nil
}

// id reads an id. One as permitID writes it is no text of its own on the way.
func (s *scanner) id(ids *[]permitID, unread *int) error {
	begin := s.i
	if raw, plain, err := s.quoted(); err == nil && plain {
		if id, ok := parseID(raw[1 : len(raw)-1]); ok {
			*ids = append(*ids, id)
			return nil
		}
	}
	s.i = begin
	text, err := s.text()
	if err != nil {
		return err
	}
	if id, ok := parseID(text); ok { // with escapes
		*ids = append(*ids, id)
	} else {
		*unread++
	}
	return nil
}

func (s *scanner) ids() (ids []permitID, unread int, err error) {
	ids = make([]permitID, 0, min((len(s.b)-s.i)/len(`"AAAAAAAAAAAAAAAAAAAAAAAA"`), mostPermits))
	err = s.array(mostPermits, func() error { return s.id(&ids, &unread) })
	return ids, unread, err
}

func (s *scanner) seconds() (time.Duration, error) {
	f, err := s.number(0, longestWait.Seconds())
	return time.Duration(math.Ceil(f * float64(time.Second))), err
}

// cost reads amounts by unit. Without requests it is one request.
func (s *scanner) cost() (c limit.Cost, err error) {
	c = limit.One
	err = s.object(unitWords, func(i int) error {
		n, err := s.integer(0, limit.MaxCost)
		c[units[i]] = n
		return err
	})
	if err == nil && c == (limit.Cost{}) {
		err = wrong("it is empty, expected an amount above 0")
	}
	return c, err
}

// header reads header fields. A value may be a list, for fields that come several times.
func (s *scanner) header() (h http.Header, err error) {
	h = http.Header{}
	fields := 0
	err = s.members(nil, func(name string) error {
		add := func() error {
			v, err := s.text()
			if fields++; err == nil && (fields > mostFields || len(name)+len(v) > longestField) {
				err = wrong("too long, expected at most %d fields of %d bytes", mostFields, longestField)
			}
			h.Add(name, v)
			return err
		}
		if s.next() == '[' {
			return s.array(mostFields, add)
		}
		return add()
	})
	return h, err
}
