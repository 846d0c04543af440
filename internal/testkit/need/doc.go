// Package need lets a test ask for a program that a machine may lack, such as nginx. If the program
// is missing, the test is skipped. If the environment has PACELINE_REQUIRE_SERVICES=1, as .ci/run
// sets it, the test fails instead.
//
// # Files
//
//	need.go          Program finds a program or skips the test; WholeOnly, Fewer, NotShort: a shorter `./check`
//	long.go          Long and LongOnly: PACELINE_LONG, the long form of tests
//	service.go       Redis and PostgreSQL servers of a test: start, crash, free ports, copies of a data folder
//	pgbouncer.go     PgBouncer, a pooler before a PostgreSQL
//	patroni.go       a PostgreSQL cluster with Patroni and etcd: failover, a primary that is cut off
//	python.go        a Python that can import some modules
//	nodejs.go        a Node that is new enough for the SDKs
//	certificate.go   a CA of the test, and a certificate of 127.0.0.1
//	terminal_linux.go  a terminal of a test, and a person who types there
//	free_address.go  an address at which nobody listens
package need
