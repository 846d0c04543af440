// Package proxybench measures `paceline proxy` beside other proxies:
// net/http/httputil.ReverseProxy, nginx and HAProxy. Each is a process of its own, before the same
// server and under the same load; they take turns, and the figures are medians of rounds.
//
// The server and the load are in this process. On a machine with few cores they take time from each
// proxy alike. The comparison is between proxies, and with no proxy at all.
package proxybench
