// Package proxybench measures `paceline proxy` beside other proxies:
// net/http/httputil.ReverseProxy, nginx and HAProxy. Each is a process of its own, before the same
// server and under the same load; they take turns, and the figures are medians of rounds.
//
// The server and the load are in this process. On a machine with few cores they take time from the
// proxy, and from each proxy alike: what is compared is a proxy with the others, and with no proxy
// at all.
package proxybench
