package scheduler_test

import (
	"reflect"
	"testing"

	"github.com/paceline-go/paceline/internal/core/scheduler"
)

// With a thousand lanes a turn consists of cache misses. So the fields of a turn are together, and
// begin with a cache line.
func TestLayout(t *testing.T) {
	if reflect.TypeFor[uintptr]().Size() != 8 {
		t.Skip("laid out for 64 bits")
	}
	for _, c := range []struct {
		of    reflect.Type
		size  uintptr
		first string // in its cache line
		at    uintptr
	}{
		{reflect.TypeFor[scheduler.Ticket](), 320, "Cost", 64},
		{reflect.TypeFor[scheduler.Ticket](), 320, "Deadline", 128},
		{reflect.TypeFor[scheduler.Ticket](), 320, "Ahead", 168}, // written in each turn: before the next line
		{reflect.TypeFor[scheduler.Ticket](), 320, "Of", 192},
		{reflect.TypeFor[scheduler.Ticket](), 320, "Least", 256},
		{reflect.TypeFor[scheduler.Limit](), 256, "first", 64},
		{reflect.TypeFor[scheduler.Limit](), 256, "spare", 128},
		{reflect.TypeFor[scheduler.Way](), 256, "at", 64},
		{reflect.TypeFor[scheduler.Way](), 256, "flows", 128},
	} {
		if f, ok := c.of.FieldByName(c.first); !ok || f.Offset != c.at || c.of.Size() != c.size {
			t.Errorf("%v: %d bytes, want %d; %s at %d, want %d", c.of, c.of.Size(), c.size, c.first, f.Offset, c.at)
		}
	}
	lane := reflect.TypeFor[scheduler.Lane]()
	ends, _ := lane.FieldByName("ends")
	least, _ := lane.FieldByName("least")
	if ends.Offset+16 > 64 || least.Offset != 128 {
		t.Errorf("%v: ends at %d, want it in the first 64; least at %d, want 128", lane, ends.Offset, least.Offset)
	}
}
