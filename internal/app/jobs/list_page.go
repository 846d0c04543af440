package jobs

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
)

// page returns a page of a list, the newest first: limit, and after or after_id, before_id. usual is
// the size without a limit.
func page[T any](q url.Values, usual, most int, all []T, id func(T) string) (some []T, more bool, err error) {
	n, from, to := usual, 0, len(all)
	if s := q.Get("limit"); s != "" {
		if n, err = strconv.Atoi(s); err != nil || n < 1 || n > most {
			return nil, false, fmt.Errorf("limit: %.20q is no number from 1 to %d", s, most)
		}
	}
	if q.Get("order") == "asc" {
		slices.Reverse(all)
	}
	for _, name := range []string{"after", "after_id", "before_id"} {
		s := q.Get(name)
		if s == "" {
			continue
		}
		at := slices.IndexFunc(all, func(one T) bool { return id(one) == s })
		switch {
		case at < 0:
			return nil, false, fmt.Errorf("%s: there is no %.100q", name, s)
		case name == "before_id":
			to, from = at, max(from, at-n)
		default:
			from = at + 1
		}
	}
	end := min(from+n, to)
	return all[min(from, end):end], end < to || to < len(all) && from > 0, nil
}

// ends are the ids of the first and the last of a page; nil: it is empty.
func ends[T any](some []T, id func(T) string) (first, last any) {
	if len(some) == 0 {
		return nil, nil
	}
	return id(some[0]), id(some[len(some)-1])
}
