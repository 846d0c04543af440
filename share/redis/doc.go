// Package redis stores shared limits in Redis 7: one server, a cluster, or sentinels. Each limit is
// one key of Redis: a hash with two fields, a version and a blob with the state. The Redis server
// needs no disk for shared limits. After a restart or a failover, Redis has another run_id. So the
// processes that still run notice the loss, and restore the state of their limits.
//
// A process that shares a limit needs the Redis commands EVALSHA, EVAL, HMGET, HGET and HSET on
// keys with the prefix ("paceline:" by default), and TIME and INFO. Store.Names, which lists the
// limits, also needs SCAN. Store.Forget, which removes a limit, needs DEL. In a cluster, the client
// also needs CLUSTER and COMMAND, on each server.
//
// # Files
//
//	redis.go    Store: its turns, Lua, clock and run_id; what is not writable
//	address.go  Open: addresses of one server, a cluster or sentinels, with TLS and sockets
package redis
