package format

import (
	"testing"
)

// The last line offers what another run can do.
func TestEndsInWords(t *testing.T) {
	of := func(all ...DeadClass) (d [deadClasses]int) {
		for _, c := range all {
			d[c]++
		}
		return d
	}
	for want, e := range map[string]DeadEnds{
		"": {Again: true},
		"1 dead: 1 outage; --retry-dead=outage sends those again": {Dead: of(DeadOutage), Again: true},
		"4 dead: 1 outage, 1 failed, 1 limited, 1 nonce; --retry-dead=outage,failed,limited,nonce sends those again": {
			Dead: of(DeadOutage, DeadFailed, DeadLimited, DeadMisnumbered), Again: true},
		"1 dead: 1 expired; --retry-dead=expired sends those again": {Dead: of(DeadExpired), Again: true},
		"1 dead: 1 refused": {Dead: of(DeadRefused)},
		"3 expired; --retry-dead=expired --renew sends those again":                                                                                                                                                   {Lapsed: 3, Again: true},
		"2 dead: 1 outage, 1 invalid; 3 expired; --retry-dead=outage,expired --renew sends those again":                                                                                                               {Dead: of(DeadOutage, DeadInvalid), Lapsed: 3, Again: true},
		"1 dead: 1 redirect; --retry-dead=redirect sends those again, once the cause that their errors name is gone (redirect: --key-host)":                                                                           {Dead: of(DeadRedirected), KeyHost: 1, Again: true},
		"1 dead: 1 refused; --retry-dead=refused sends those again, once the cause that their errors name is gone (refused: 1 had no credential; --key-env NAME and --header 'Authorization: Bearer {key}' send one)": {Dead: of(DeadRefused), Bare: 1, Again: true},
		"1 dead: 1 redirect; --retry-dead=redirect sends those again, once the cause that their errors name is gone":                                                                                                  {Dead: of(DeadRedirected), Again: true},
	} {
		if got := e.String(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// Each status is of one class. What may pass is an outage, also where the status is not registered.
func TestDeadClassOfStatus(t *testing.T) {
	for class, all := range map[DeadClass][]int{
		DeadOutage:     {0, 408, 425, 502, 503, 504, 529},
		DeadLimited:    {429},
		DeadRefused:    {401, 402, 403, 407, 418},
		DeadInvalid:    {400, 404, 409, 410, 422, 499, 501, 505},
		DeadRedirected: {300, 302, 308, 399},
		DeadFailed:     {500, 507, 520, 599},
	} {
		for _, status := range all {
			if got := DeadClassOfStatus(status); got != class {
				t.Errorf("%d is of %v, want %v", status, got, class)
			}
		}
	}
}
