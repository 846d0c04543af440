package backlog

import "time"

// Job is a request to be added to a Backlog.
type Job struct {
	// ID is the request's name: 1 to 500 bytes of UTF-8, none of them 0. Each ID has one result. A Job
	// whose ID is there already is passed over.
	ID string
	// Data is what a worker needs to send the request. The Backlog does not read it.
	Data []byte
	// Priority puts the request a minute before others for each step. So a lower priority waits longer,
	// and not for ever. From -1,000,000 to 1,000,000. If zero, requests go in their order.
	Priority int
	// Lane is for requests with a limit of their own. A worker takes requests of the lanes that it
	// names. If zero, it is the lane of all that name none.
	Lane int32
	// Entered is the instant from which Priority counts. If zero, it is the time of the call.
	Entered time.Time
	// Due is the instant before which the request does not go, by the clock of the store. If zero, it may
	// go at once.
	Due time.Time
	// Deadline is the instant after which the request is not sent any more, by the clock of the worker.
	// If zero, there is none.
	Deadline time.Time
}

// State is what became of a request.
type State uint8

// The states of a Result.
const (
	// Done: a server answered, and the request is at its end.
	Done State = 1 + iota
	// Dead: the request failed for good. RetryDead sends it again.
	Dead
	// Expired: the Deadline came first.
	Expired
	// Cancelled: Cancel came first.
	Cancelled
)

var stateNames = [...]string{Done: "done", Dead: "dead", Expired: "expired", Cancelled: "cancelled"}

// String returns "done", "dead", "expired" or "cancelled".
func (s State) String() string {
	if int(s) < len(stateNames) && s > 0 {
		return stateNames[s]
	}
	return "unknown"
}

// Result is the end of a request.
type Result struct {
	// Seq is the place of the request in the order of the input.
	Seq   int64
	ID    string
	State State
	// Class says why a request is dead, in the worker's words.
	Class string
	// Repeat says that the request may have been sent again after it was served.
	Repeat bool
	// Attempts is how often it may have been sent.
	Attempts int
	// Worker is the number of the worker that reported it; 0: none did.
	Worker int64
	// At is when it was written, by the clock of the store.
	At time.Time
	// Line is the worker's answer. The Backlog does not read it.
	Line []byte
}

// Counts is how many requests of a Backlog are in each state. Their sum is Total.
type Counts struct {
	Total int64
	// Ready are those that any worker may take, Later those that rest until an instant, and Held those
	// that a worker has.
	Ready, Later, Held int64
	// Done, Dead, Expired and Cancelled have a Result.
	Done, Dead, Expired, Cancelled int64
	// Repeats is how many results have Repeat. They are in the other counts, too.
	Repeats int64
}

// Left returns how many requests have no result yet.
func (c Counts) Left() int64 { return c.Ready + c.Later + c.Held }

// WorkerStatus is what the store knows of a worker.
type WorkerStatus struct {
	ID int64
	// Host and PID are those of its process.
	Host string
	PID  int
	// Beat rises with each turn. A worker that lives takes one each second.
	Beat int64
	// Dead says that it was given up, or ended. Ended is when; zero: it is not dead, or not known.
	Dead  bool
	Ended time.Time
	// Held is how many requests it has. Sending is how many it may have sent without an answer yet. Of one that
	// is dead, these may have been sent twice: it was given up.
	Held, Sending int64
	// Results is how many results it wrote.
	Results int64
}

// Info is what the store knows of a Backlog, without counting its requests.
type Info struct {
	// ID is the number of the Backlog in the store.
	ID   int64
	Name string
	// Format names what Data and Line are.
	Format string
	Paused bool
	// Note is the text of SetNote.
	Note []byte
}
