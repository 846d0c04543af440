package provider

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// written is a text that is read from its beginning. Each of its methods takes one thing off that
// beginning, or nothing if the thing is not there.
type written string

// units has the units of time, in lower case.
var units = map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "µs": time.Microsecond,
	"ms": time.Millisecond, "msec": time.Millisecond, "msecs": time.Millisecond, "millis": time.Millisecond,
	"millisecond": time.Millisecond, "milliseconds": time.Millisecond,
	"s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second, "秒": time.Second, "秒钟": time.Second,
	"m": time.Minute, "min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute, "分": time.Minute, "分钟": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hrs": time.Hour, "hour": time.Hour, "hours": time.Hour, "小时": time.Hour, "时": time.Hour,
	"d": day, "day": day, "days": day, "天": day,
	"w": 7 * day, "week": 7 * day, "weeks": 7 * day, "month": 30 * day, "months": 30 * day,
}

// numerals has the small numbers that are written out.
var numerals = map[string]float64{
	"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "ten": 10, "fifteen": 15, "twenty": 20, "thirty": 30, "sixty": 60,
}

func (w *written) skip(chars string) { *w = written(strings.TrimLeft(string(*w), chars)) }

// cut takes off one of the texts.
func (w *written) cut(texts ...string) bool {
	for _, t := range texts {
		if len(*w) >= len(t) && strings.EqualFold(string((*w)[:len(t)]), t) {
			*w = (*w)[len(t):]
			return true
		}
	}
	return false
}

// word takes off the letters of the beginning, and returns them in lower case. Chinese is written
// without spaces, so that each unit of time is a word of its own there.
func (w *written) word() string {
	for _, u := range [...]string{"秒钟", "秒", "分钟", "分", "小时", "时", "天"} {
		if w.cut(u) {
			return u
		}
	}
	s := string(*w)
	n := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsLetter(r) || r >= 0x2e80 })
	if n < 0 {
		n = len(s)
	}
	*w = (*w)[n:]
	return strings.ToLower(s[:n])
}

// number takes off a decimal number without a sign. A comma separates thousands, or is a decimal
// point.
func (w *written) number() (float64, bool) {
	s := string(*w)
	digits := s[:len(s)-len(strings.TrimLeft(s, "0123456789.,"))]
	digits = strings.TrimRight(digits, ".,") // the end of the sentence
	text := digits
	if thousands(text) {
		text = strings.ReplaceAll(text, ",", "")
	}
	f, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64)
	if err != nil || len(digits) > 20 {
		return 0, false
	}
	*w = (*w)[len(digits):]
	return f, true
}

// count takes off a number that is written in digits or as a word.
func (w *written) count() (float64, bool) {
	rest := *w
	f, ok := rest.number()
	if !ok {
		f, ok = numerals[rest.word()]
	}
	if ok {
		*w = rest
	}
	return f, ok
}

// span takes off a duration: "4hr 59min", "2 days, 3 hours and 1 minute", "1m30.5s", "30-60
// seconds", "01:02:03", "PT1M30S". It is at most a nanosecond more than maxWorded.
func (w *written) span() (total time.Duration, ok bool) {
	if d, ok := w.colons(); ok {
		return d, true
	}
	if d, ok := w.iso(); ok {
		return d, true
	}
	rest, above := *w, time.Duration(math.MaxInt64)
	for {
		part := rest
		f, is := part.count()
		if !is {
			break
		}
		if to := part; to.cut("-", "–", " - ", " – ", " to ") { // a range: its end is meant
			if g, is := to.number(); is {
				f, part = max(f, g), to
			}
		}
		part.skip(" \u00a0-")
		unit, is := units[part.word()]
		if !is || unit >= above { // 30 seconds, 60 seconds: these are two
			break
		}
		part.cut("(s)")
		above = unit
		total, ok, rest = min(total+scale(f, unit), maxWorded+1), true, part
		*w = rest
		rest.skip(" ,\u00a0")
		rest.cut("and ", "& ")
	}
	return total, ok
}

// iso takes off a duration of ISO 8601, with hours or minutes or seconds: PT30S, P1DT2H.
func (w *written) iso() (total time.Duration, ok bool) {
	rest := *w
	if !rest.cut("P") {
		return 0, false
	}
	if d := rest; true {
		if n, is := d.number(); is && d.cut("D") {
			total, rest = scale(n, day), d
		}
	}
	if !rest.cut("T") {
		return 0, false
	}
	for range 3 {
		part := rest
		n, is := part.number()
		unit, letter := units[part.word()]
		if !is || !letter {
			break
		}
		total, ok, rest = min(total+scale(n, unit), maxWorded+1), true, part
	}
	if ok {
		*w = rest
	}
	return total, ok
}

// maxWorded is the longest time that words are believed about.
const maxWorded = 366 * day

// scale returns f units, rounded up, and at most a nanosecond more than maxWorded.
func scale(f float64, unit time.Duration) time.Duration {
	if f *= float64(unit); f <= float64(MaxWait) {
		return ceil(f)
	}
	return time.Duration(min(f, float64(maxWorded+1)))
}

// colons takes off a duration as a clock counts it down: 01:02:03.
func (w *written) colons() (time.Duration, bool) {
	rest := *w
	h, hours := rest.digits(1, 3)
	if !hours || !rest.cut(":") {
		return 0, false
	}
	m, minutes := rest.digits(2, 2)
	if !minutes || !rest.cut(":") {
		return 0, false
	}
	s, seconds := rest.digits(2, 2)
	if !seconds || m > 59 || s > 59 || rest != "" && (rest[0] == ':' || rest.zoned()) {
		return 0, false
	}
	*w = rest
	return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second, true
}

// zoned reports whether a zone or a half of the day follows: then it was a time, and no duration.
func (w written) zoned() bool {
	w.skip(" (")
	if w.cut("am", "pm", "a.m", "p.m") {
		return true
	}
	_, ok := w.zone(time.Time{})
	return ok
}

// digits takes off a whole number of least to most digits.
func (w *written) digits(least, most int) (int, bool) {
	s := string(*w)
	n := len(s) - len(strings.TrimLeft(s, "0123456789"))
	if n < least || n > most {
		return 0, false
	}
	v, err := strconv.Atoi(s[:n])
	*w = (*w)[n:]
	return v, err == nil
}

// calendar is a day as it is written. Zero parts are not there.
type calendar struct {
	year, month, day int
	weekday          int // 1: Sunday
	tomorrow         bool
}

// instant takes off an instant: "2026-12-02 09:18:00 UTC", "12-02 09:18", "Dec 2nd, 2026 at 9:18
// PM", "Wed, 02 Dec 2026 09:18:00 +0000", "8pm (Europe/Rome)", "tomorrow at 10:00 UTC", "midnight
// Pacific time". A day without a time begins at midnight. clock is the present, by which what is not
// said is completed. zoned is false if no zone is written; it is UTC then.
func (w *written) instant(clock time.Time) (at time.Time, zoned, ok bool) {
	rest := *w
	date, dated := rest.date()
	if dated {
		rest.skip(" ,T")
		rest.cut("at ")
		rest.skip(" ")
	}
	before := rest
	sinceMidnight, timed := rest.time()
	if !timed {
		if rest = before; !dated {
			return at, false, false
		}
	}
	place := rest
	place.skip(" (")
	zone, zoned := place.zone(clock)
	if zoned {
		place.cut(")")
		rest = place
	} else {
		zone = time.UTC
	}
	at, ok = date.next(clock.In(zone), sinceMidnight)
	if ok {
		*w = rest
	}
	return at, zoned, ok
}

// next returns the instant of a time on a day. The first that is not long past counts, where the day
// leaves a choice.
func (c calendar) next(clock time.Time, sinceMidnight time.Duration) (time.Time, bool) {
	on := func(y, m, d int) time.Time {
		h := int(sinceMidnight / time.Hour)
		return time.Date(y, time.Month(m), d, h, int(sinceMidnight/time.Minute)%60, int(sinceMidnight/time.Second)%60, int(sinceMidnight%time.Second), clock.Location())
	}
	const justNow = 5 * time.Minute
	y, m, d := clock.Date()
	switch {
	case c.year > 0:
		return on(c.year, c.month, c.day), true
	case c.month > 0: // a year is not said: it is near
		for year := y; year <= y+1; year++ {
			if t := on(year, c.month, c.day); t.After(clock.Add(-day)) && t.Before(clock.Add(MaxWait)) {
				return t, true
			}
		}
		return time.Time{}, false
	case c.weekday > 0:
		ahead := (c.weekday - 1 - int(clock.Weekday()) + 7) % 7
		if t := on(y, int(m), d+ahead); !t.Before(clock.Add(-justNow)) {
			return t, true
		}
		return on(y, int(m), d+ahead+7), true
	case c.tomorrow:
		return on(y, int(m), d+1), true
	}
	t := on(y, int(m), d)
	if t.Before(clock.Add(-justNow)) {
		t = on(y, int(m), d+1)
	}
	return t, true
}

var (
	monthNames = [...]string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	dayNames   = [...]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
)

// named returns the place, from 1, of the name that a word of three letters or more begins with.
func placeOf(word string, names []string) int {
	for i, name := range names {
		if strings.HasPrefix(word, name) && len(word) <= 9 {
			return i + 1
		}
	}
	return 0
}

// date takes off a day: 2026-12-02, 2026/12/02, 12-02, Dec 2nd 2026, 2 December, Wed, 02 Dec 2026,
// tomorrow, Monday.
func (w *written) date() (c calendar, ok bool) {
	rest := *w
	name := rest
	word := name.word()
	switch {
	case word == "today":
		rest = name
	case word == "tomorrow":
		rest, c.tomorrow = name, true
	case placeOf(word, dayNames[:]) > 0:
		rest, c.weekday = name, placeOf(word, dayNames[:])
		after := rest
		after.skip(".,， ")
		if c.onDay(&after) {
			rest = after
		}
	case !c.onDay(&rest):
		return c, false
	}
	*w = rest
	return c, c.month == 0 || c.month <= 12 && c.day >= 1 && c.day <= 31 && (c.year == 0 || c.year >= 1970 && c.year < 10000)
}

// onDay takes off a day with its month.
func (c *calendar) onDay(w *written) bool {
	rest := *w
	if c.inNumbers(&rest) {
		*w = rest
		return true
	}
	rest = *w
	var is bool
	if c.day, is = rest.digits(1, 2); is {
		rest.cut("st", "nd", "rd", "th")
		rest.skip(" -.")
	}
	if c.month = placeOf(rest.word(), monthNames[:]); c.month == 0 {
		return false
	}
	if !is {
		rest.skip(" .")
		if c.day, is = rest.digits(1, 2); !is {
			return false
		}
		rest.cut("st", "nd", "rd", "th")
	}
	*w = rest
	rest.skip(" ,-")
	if year, is := rest.digits(4, 4); is {
		c.year = year
		*w = rest
	}
	return true
}

// inNumbers takes off 2026-12-02, or 12-02 before a time.
func (c *calendar) inNumbers(w *written) bool {
	separated := func(w *written) bool { return w.cut("-", "/", ".") }
	rest := *w
	year, is := rest.digits(4, 4)
	if is && !separated(&rest) {
		return false
	}
	if !is {
		rest = *w
	}
	month, ok := rest.digits(1, 2)
	if !ok || !separated(&rest) {
		return false
	}
	d, ok := rest.digits(1, 2)
	if !ok {
		return false
	}
	if !is { // 12-02 may be anything, if no time follows
		if month > 12 {
			month, d = d, month
		}
		after := rest
		after.skip(" ,T")
		if _, timed := after.time(); !timed {
			return false
		}
	}
	c.year, c.month, c.day, *w = year, month, d, rest
	return true
}

// time takes off a time of day: 09:18:00, 9:18 PM, 8pm, midnight, noon.
func (w *written) time() (sinceMidnight time.Duration, ok bool) {
	switch {
	case w.cut("midnight"):
		return 0, true
	case w.cut("noon"):
		return 12 * time.Hour, true
	}
	rest := *w
	h, is := rest.digits(1, 2)
	if !is {
		return 0, false
	}
	var m, s int
	var fraction time.Duration
	minutes := rest.cut(":")
	if minutes {
		if m, is = rest.digits(2, 2); !is {
			return 0, false
		}
		if rest.cut(":") {
			if s, is = rest.digits(2, 2); !is {
				return 0, false
			}
			if after := rest; after.cut(".") {
				if f, is := after.digits(1, 9); is {
					fraction = time.Duration(float64(f) * math.Pow10(9-(len(rest)-len(after)-1)))
					rest = after
				}
			}
		}
	}
	half := rest
	half.skip(" \u00a0\u202f")
	switch morning := half.cut("am", "a.m."); {
	case morning || half.cut("pm", "p.m."):
		if h < 1 || h > 12 {
			return 0, false
		}
		if h %= 12; !morning {
			h += 12
		}
		rest = half
	case !minutes:
		return 0, false
	}
	if h > 24 || m > 59 || s > 60 {
		return 0, false
	}
	*w = rest
	return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second + fraction, true
}

// zones has the zones that are called by a name of their own, by their distance from UTC in
// minutes. A name that means several, as CST does, is none of them.
var zones = map[string]int{
	"utc": 0, "gmt": 0, "z": 0, "est": -300, "edt": -240, "cdt": -300, "mst": -420, "mdt": -360, "pst": -480, "pdt": -420,
	"cet": 60, "cest": 120, "eet": 120, "eest": 180, "wet": 0, "west": 60, "bst": 60, "msk": 180, "jst": 540, "kst": 540, "sgt": 480, "hkt": 480,
	"aest": 600, "aedt": 660, "nzst": 720, "nzdt": 780, "brt": -180,
}

// american has the zones of the United States, by how many hours they are ahead of the Pacific.
var american = map[string]int{"pt": 0, "pacific": 0, "mt": 1, "mountain": 1, "ct": 2, "central": 2, "et": 3, "eastern": 3}

// zone takes off a zone: UTC, GMT+2, +02:00, PST, Pacific time, Europe/Rome.
func (w *written) zone(clock time.Time) (*time.Location, bool) {
	rest := *w
	name := rest
	word := name.word()
	if minutes, is := zones[word]; is {
		*w = name
		if minutes == 0 && word != "z" {
			if m, is := w.offset(); is {
				minutes = m
			}
		}
		return time.FixedZone(strings.ToUpper(word), minutes*60), true
	}
	if m, is := rest.offset(); is {
		*w = rest
		return time.FixedZone("", m*60), true
	}
	if hours, is := american[word]; is {
		*w = name
		name.skip(" ")
		name.cut("standard ", "daylight ")
		if name.cut("time") {
			*w = name
		}
		return time.FixedZone(strings.ToUpper(word), int(pacific(clock).Seconds())+hours*3600), true
	}
	s := string(rest)
	n := strings.IndexFunc(s, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/_+-", r)
	})
	if n < 0 {
		n = len(s)
	}
	if n > 40 || !strings.Contains(s[:n], "/") {
		return nil, false
	}
	l, err := time.LoadLocation(s[:n])
	if err != nil {
		return nil, false
	}
	*w = rest[n:]
	return l, true
}

// offset takes off a distance from UTC, and returns it in minutes: +2, -08:00, +0530.
func (w *written) offset() (int, bool) {
	rest := *w
	sign := 1
	if !rest.cut("+") {
		if sign = -1; !rest.cut("-") && !rest.cut("−") {
			return 0, false
		}
	}
	if both, is := rest.digits(4, 4); is {
		*w = rest
		return sign * (both/100*60 + both%100), both <= 1400
	}
	h, is := rest.digits(1, 2)
	if !is || h > 14 {
		return 0, false
	}
	m := 0
	if after := rest; after.cut(":") {
		if m, is = after.digits(2, 2); is {
			rest = after
		}
	}
	*w = rest
	return sign * (h*60 + m), true
}
