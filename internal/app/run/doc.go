//	attempt.go       sends one request
//	next_pages.go    requests for the next page of an answer
