// Package costs finds out from answers that the charge of a route is wrong or missing, and replaces
// it. A charge states what the requests of a route cost, and in which resource (part of the quota)
// they count. Some servers state in each answer how much of a limit of weight or orders is used. If
// two requests, each alone in flight, raised that by one amount above the charge, later requests
// cost that amount. A route without a charge is corrected after its first such request, until the
// next one raises it by another amount. If an answer names another resource than the charge, later
// requests count there. A notice for people then states which line of the configuration to change.
// A cost that is too high is not noticed.
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
//	cost_of_shape.go  what requests of a shape did cost, where only the answer knows it
//	folded_route.go   paths that differ in an id alone are one route
//	mend.go           the line that mends a charge, in words
package costs
