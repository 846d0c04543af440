// Package queued makes the jobs of a job queue wait for their limits. The job queue is another
// project's, such as River, Asynq or Temporal. The adapters for these three, in contrib, use
// package queued.
//
// An adapter for a job queue calls Keys.Do in a worker, around the work of a job. If the limits let
// the job go within MaxWait, Do waits at the limits of the job's key and then runs the work.
// (MaxWait is 250 ms by default, and at least 500 ms with a share.Member.) Otherwise Do returns at
// once an error of the type Later, which contains the time that is left. The adapter then has the
// queue bring the job back after that time, and the worker is free. Package snooze decides which of
// the two happens. If Job.Stays is set, Do always waits. If the cost of the job never fits, Do
// returns a paceline.WaitError.
//
// The work of a job sends its request by Attempt.Send, or reports an answer by Attempt.Answered. If
// a server refuses a request, all jobs of the same key in this process pause. If the work then
// returns an error, Do returns a Later, so that the refused job comes back when it may be sent
// again.
//
// Package queued writes nothing to a database. The job queue stores the instant at which each job
// comes back, so this instant survives a restart of the process. The order of the jobs survives
// only if the queue knows when each job was made.
//
// # Files
//
//	queued.go   whether a job waits in its worker or goes back, and until when
//	attempt.go  a job's turn: Send, an answer that is reported, settlement
package queued
