// Package costs finds out from answers that the charge of a route is wrong or missing, and replaces
// it. A charge states what the requests of a route cost, and in which resource (part of the quota)
// they count. Some servers state in each answer how much of a limit of weight or orders is used. If
// two requests, each alone in flight, raised that by one amount above the charge, later requests
// cost that amount. A route without a charge is corrected after its first such request, until the
// next one raises it by another amount. If an answer names another resource than the charge, later
// requests count there. A notice for people then states which line of the configuration to change.
// A cost that is too high is not noticed.
//
// The stated use is also compared with the configured limits. Where the server counts more than a limit does, no more
// goes than is left by the answers, and a remark names the limit that counts as the server does.
//
// Where only the answer tells a cost, the amounts of the charge are reserved. GraphQL queries of one
// shape reserve what the latest one did cost, if the charge says so or has no amount.
//
// Package transport and the command `paceline run` use package costs. The charges themselves are in
// package provider.
//
// # Files
//
//	wrong_costs.go    finds from stated usage that a charge is wrong; what requests cost instead
//	stated_use.go     stated usage beside what the configured limits count: a limit of requests where weight counts
//	stated_limit.go   a stated limit below the configured one
//	cost_of_shape.go  what requests of a shape did cost, where only the answer knows it
//	folded_route.go   paths that differ in an id alone are one route
//	mend.go           the line that mends a charge, in words
package costs
