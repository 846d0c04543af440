package latency

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Parse reads the name of a law, in one of the Forms. open opens the file of recorded:FILE. If it is
// nil, no file can be opened. Errors quote the text and list the accepted forms.
//
// A recording has a duration ("12.5ms") or a number of milliseconds ("12.5") per line. Empty lines and
// lines that start with # are skipped. An error names the file and the line.
func Parse(s string, open func(name string) (io.ReadCloser, error)) (Law, error) {
	name, arguments, ok := strings.Cut(s, ":")
	if !ok {
		return Law{}, fmt.Errorf("latency: %q is no law; accepted: %s", s, Forms)
	}
	if name == "recorded" {
		return openRecorded(arguments, open)
	}
	l, err := parse(name, arguments)
	if err != nil {
		return Law{}, fmt.Errorf("latency: %q: %w; accepted: %s", s, err, Forms)
	}
	return l, nil
}

func parse(name, arguments string) (Law, error) {
	switch name {
	case "constant":
		d, err := duration(arguments)
		if err != nil {
			return Law{}, err
		}
		return newConstant(d)
	case "uniform":
		lo, hi, err := pair(ofOneUnit(arguments), "-")
		if err != nil {
			return Law{}, err
		}
		return newUniform(lo, hi)
	case "exponential":
		if !strings.Contains(arguments, "+") {
			arguments += "+0"
		}
		mean, floor, err := pair(arguments, "+")
		if err != nil {
			return Law{}, err
		}
		return newExponential(mean, floor)
	case "lognormal":
		median, p99, err := pair(arguments, ",p99=")
		if err != nil {
			return Law{}, err
		}
		return newLognormal(median, p99)
	case "bimodal":
		values, probability, ok := strings.Cut(arguments, "@")
		if !ok {
			return Law{}, errors.New(`no "@" before the probability`)
		}
		a, b, err := pair(values, ",")
		if err != nil {
			return Law{}, err
		}
		p, err := number(probability)
		if err != nil {
			return Law{}, err
		}
		return newBimodal(a, b, p)
	case "pareto":
		smallest, exponent, ok := strings.Cut(arguments, ",")
		if !ok {
			return Law{}, errors.New(`no "," before the exponent`)
		}
		scale, err := duration(smallest)
		if err != nil {
			return Law{}, err
		}
		alpha, err := number(exponent)
		if err != nil {
			return Law{}, err
		}
		return newPareto(scale, alpha)
	}
	return Law{}, fmt.Errorf("no law is called %q", name)
}

func pair(s, separator string) (a, b time.Duration, err error) {
	first, second, ok := strings.Cut(s, separator)
	if !ok {
		return 0, 0, fmt.Errorf("no %q between two durations", separator)
	}
	if a, err = duration(first); err != nil {
		return 0, 0, err
	}
	b, err = duration(second)
	return a, b, err
}

// ofOneUnit writes 150-250ms as 150ms-250ms.
func ofOneUnit(s string) string {
	least, most, _ := strings.Cut(s, "-")
	unit := strings.TrimLeft(most, "0123456789.")
	if least == "" || strings.Trim(least, "0123456789.") != "" ||
		!slices.Contains([]string{"ns", "us", "µs", "ms", "s", "m", "h"}, unit) {
		return s
	}
	return least + unit + "-" + most
}

func duration(s string) (time.Duration, error) {
	if s != "" && (s[0] < '0' || s[0] > '9') && s[0] != '.' { // "+5ms" is refused, since a law must not have two names
		return 0, fmt.Errorf("%q is not a duration of 0 or more", s)
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration such as 50ms", s)
	}
	return d, nil
}

func number(s string) (float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return f, nil
}

func openRecorded(name string, open func(name string) (io.ReadCloser, error)) (Law, error) {
	if name == "" {
		return Law{}, fmt.Errorf("latency: %q names no file; accepted: %s", "recorded:", Forms)
	}
	if open == nil {
		return Law{}, fmt.Errorf("latency: recorded:%s: files cannot be opened here", name)
	}
	f, err := open(name)
	if err != nil {
		return Law{}, fmt.Errorf("latency: recorded:%s: %w", name, err)
	}
	defer f.Close()
	return read(name, f)
}

// read reads a recording.
func read(name string, r io.Reader) (Law, error) {
	var latencies []time.Duration
	lines := bufio.NewScanner(r)
	n := 0
	for lines.Scan() {
		n++
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		d, err := time.ParseDuration(line)
		if err != nil {
			ms, bad := strconv.ParseFloat(line, 64)
			if bad != nil || !(ms >= 0 && ms*1e6 <= float64(longest)) {
				return Law{}, fmt.Errorf("latency: %s:%d: %q is neither a duration such as 12.5ms nor a number of milliseconds",
					name, n, line)
			}
			d = time.Duration(ms * 1e6)
		}
		if err := check("latency", d); err != nil {
			return Law{}, fmt.Errorf("latency: %s:%d: %w", name, n, err)
		}
		latencies = append(latencies, d)
	}
	if err := lines.Err(); err != nil {
		return Law{}, fmt.Errorf("latency: %s:%d: %w", name, n+1, err)
	}
	return Recorded(name, latencies)
}
