// Package jobs stores the files and batches of API clients in a folder, and sends the batches. A
// batch is a file of requests whose results a client fetches later. `paceline proxy` uses the
// package to answer requests to /v1/files, /v1/batches and /v1/messages/batches. The answers and
// errors have the form of the APIs of OpenAI and Anthropic, so the SDKs of both work as with the
// provider.
//
// All state of package jobs is in the folder. A record of a file or a batch is always replaced as a
// whole. So after a crash at any instant, the folder has the old record or the new one. At its next
// start, a Store (the type for such a folder) continues each batch that has not ended. Package
// internal/app/run sends the requests of a batch, and writes the results and its journal into the
// batch's folder. The lines below show each path, and what is there:
//
//	FOLDER/lock                         one process at a time
//	FOLDER/OWNER/files/ID.jsonl         the content of a file; only with its record, ID.json, it is a file of the API
//	FOLDER/OWNER/batches/ID/batch.json  the record of a batch; beside it are its input, results and journal
//
// The OWNER in a path of the folder is made from the name of a client of the proxy. A client sees
// its own files and batches, and none of others. Ids are 128 random bits. An id or a name from
// outside is looked up among the known ones before it becomes a part of a path, so it cannot lead
// out of the folder.
//
//	jobs_store.go         Config, Store; bounds such as the largest file; when old files go
//	owner.go              each client's folder and room; what is read at a start
//	ids.go                ids such as file-… and batch_…: made, and checked
//	file.go               files of the batch API: uploads, contents, deletion, expiry
//	batch.go              batches: states and counts; makes, cancels, removes them
//	validate.go           the mistakes in the input of a batch, as the client sees them
//	work.go               a batch from validation to end: goes on after a restart, or pauses
//	finish.go             output and error file of a batch that has ended
//	batch_apis.go         which paths the Store answers; statuses of its errors
//	openai_batches.go     /v1/files and /v1/batches: fields, forms, errors in OpenAI's words
//	anthropic_batches.go  /v1/messages/batches: fields, results, errors in Anthropic's words
//	list_page.go          pages of lists: limit, after, before_id
package jobs
