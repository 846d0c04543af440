package provider

import (
	"net/http"
	"slices"
	"strings"
)

// An answer that says that the account has no credit is about the account, and not about the
// request: any other request with the key would get the same. Gateways say so with 400, 402, 403,
// 429 and 500. What they say is read for every server, after the provider's own row.

// unpaidCodes are codes and types of errors that mean: no credit. They are exact, since "INSUFFICIENT
// QUOTA" is also a limit of concurrency.
var unpaidCodes = map[string]bool{
	"insufficient_quota": true, "insufficient_user_quota": true, "insufficient_token_quota": true, "pre_consume_token_quota_failed": true, "quota_not_enough": true,
	"insufficient_credits": true, "insufficient_credit": true, "InsufficientCredits": true, "out_of_credits": true, "no_credits": true, "credits_exhausted": true,
	"credit_exhausted": true, "credit_balance_too_low": true, "exceeded_current_quota_error": true,
	"budget_exceeded": true, "exceeded_budget": true, "ExceededBudget": true, "billing_error": true, "billing_not_active": true, "billing_hard_limit_reached": true,
	"Arrearage": true, "account_overdue": true, "AccountOverdueError": true, "account_in_arrears": true, "payment_required": true, "PaymentRequired": true,
}

// codesAt are the places of codes.
const codesAt = "error.code|error.type|code|type|error|error_code|errorCode|detail.code|detail.type|detail.status|detail.error|detail.error.code|detail.error.type|" +
	"errors.*.code|errors.*.category|error.error.code|error.status"

// unpaidWords are parts of messages, in lower case, that mean: no credit.
var unpaidWords = []string{
	"credit balance is too low", "credits are depleted", "credits have been exhausted", "credit limit is insufficient", "out of credit", "run out of credit", "no credits remaining",
	"quota is not enough", "insufficient_quota", "insufficient_user_quota", "budget has been exceeded", "exceededbudget", "over budget", "account is overdue", "account is in arrears",
	"account balance is not enough", "account balance is insufficient", "account balance is too low", "额度不足", "欠费",
}

// balanceWords are those that servers of money also have for an order or a payment that is too
// large. They count where the status says that it is about paying for the service.
var balanceWords = []string{"insufficient", "balance", "credit", "funds", "not enough", "budget", "quota", "余额不足", "overdue", "arrears", "top up", "recharge"}

// planWords are parts of messages of a 402, in lower case, that are about what was asked for: the
// account has no right to it, and other requests may be served.
var planWords = []string{"endpoint", "premium", "feature", "subscription", "your plan", "current plan", "paid plan", "this model", "this resource", "upgrade", "x402"}

// cardCodes are codes of errors about a card or an account that a request names. They are no sign of
// the account that sends the requests.
var cardCodes = map[string]bool{"card_error": true, "card_declined": true, "CARD_DECLINED": true, "PAYMENT_METHOD_ERROR": true}

// unpaid looks for an answer that is about the account's credit.
func (r *reading) unpaid() {
	if r.Status < 400 || r.other || r.Refusal != None && r.Refusal != RateLimited && r.Refusal != QuotaExhausted {
		return
	}
	problems := len(r.Problems)
	defer func() { r.Problems = r.Problems[:problems] }() // where nobody expects JSON, its faults are no problem
	switch {
	case r.hasCode(cardCodes):
		r.other = true
		return
	case r.hasCode(unpaidCodes):
		r.Refusal = Unpaid
		return
	case r.Status == http.StatusTooManyRequests && !r.has("Retry-After") && r.limitOfZero():
		r.noQuota()
		return
	case r.Refusal != None:
		return
	}
	switch r.Status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusPaymentRequired:
		switch {
		case r.mentions(unpaidWords), r.Status == http.StatusPaymentRequired && r.mentions(balanceWords):
			r.Refusal = Unpaid
		case r.Status == http.StatusPaymentRequired:
			r.Denied = r.mentions(planWords) || len(r.at("x402Version")) > 0
			r.other = r.Denied
		}
	}
}

// noQuota notes that a limit is 0.
func (r *reading) noQuota() {
	r.Refusal, r.RetryAfter = NoQuota, 0 // to ask for a wait is said of every limit
	r.note("the limit is 0: the key may not use this at all, and waiting does not help")
}

// limitOfZero reports whether a message names a limit of 0: "limit: 0", "Limit 0, Used 0".
func (r *reading) limitOfZero() bool {
	return slices.ContainsFunc(r.messages(), func(m string) bool {
		for m = strings.ToLower(m); ; {
			_, rest, ok := strings.Cut(m, "limit")
			if !ok {
				return false
			}
			w := written(rest)
			w.skip(": =")
			n, is := w.number()
			if w.skip(" "); is && n == 0 && !w.letter() && !w.cut("/", "%", "(") {
				return true
			}
			m = rest
		}
	})
}

// hasCode reports whether one of the codes is where errors have theirs.
func (r *reading) hasCode(codes map[string]bool) bool {
	return slices.ContainsFunc(strings.Split(codesAt, "|"), func(path string) bool {
		return slices.ContainsFunc(r.at(path), func(v string) bool { return codes[v] })
	})
}

// mentions reports whether a message of the body has one of the words.
func (r *reading) mentions(words []string) bool {
	return slices.ContainsFunc(r.messages(), func(m string) bool {
		m = strings.ToLower(m)
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(m, w) })
	})
}
