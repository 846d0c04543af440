package proxybench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ticks is how many of the kernel's units of processor time are in a second, on all Linux there is.
const ticks = 100

// used is the processor time of a process and its children that are alive, and the memory that they
// have for themselves or share evenly.
func used(pid int) (cpu time.Duration, memory int64, err error) {
	for _, p := range append(children(pid), pid) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p))
		if err != nil {
			return 0, 0, err
		}
		// The second field is a name in brackets, which may hold spaces.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		user, err1 := strconv.ParseInt(fields[11], 10, 64)
		system, err2 := strconv.ParseInt(fields[12], 10, 64)
		if err1 != nil || err2 != nil {
			return 0, 0, fmt.Errorf("/proc/%d/stat: %q", p, stat)
		}
		cpu += time.Duration(user+system) * (time.Second / ticks)
		m, err := proportional(p)
		if err != nil {
			return 0, 0, err
		}
		memory += m
	}
	return cpu, memory, nil
}

func children(pid int) (all []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		for s := range strings.FieldsSeq(string(text)) {
			if n, err := strconv.Atoi(s); err == nil {
				all = append(all, n)
			}
		}
	}
	return all
}

// proportional is the memory of a process, with what it shares with others divided among them.
func proportional(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/smaps_rollup has no Pss", pid)
}
