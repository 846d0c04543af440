package baselines

import (
	"fmt"

	"github.com/paceline-go/paceline/lab/sim/fleet"
)

// demoLadder are the decreases that its author tried before the one that was kept.
var demoLadder = []string{"demo-second", "demo-half-second", "demo-limit", "demo-remaining", "demo-remaining-sleep",
	"demo-remaining-sleep-20"}

// ladderClaims are claims about the decreases that were tried.
func ladderClaims(by map[string][]fleet.Report) []Claim {
	refused := func(name string) Quantiles { return of(by[name], retry) }
	alone := func(name string) Quantiles { return of(by["alone, "+name], clear) }
	spread := of(by["demo-limit"], sd)
	const setup = "2 × 5 threads, an empty bucket, 30 minutes"
	fast, slow := refused("demo-remaining-sleep"), refused("demo-remaining-sleep-20")
	uneven := func(name string) Quantiles {
		return of(by["a day, "+name], func(r *fleet.Report) float64 { return r.SharesSteady.CV })
	}
	second, half, limit := refused("demo-second"), refused("demo-half-second"), refused("demo-limit")
	return []Claim{{
		Claim: "less by 1 s for each request served: a lot of refusals; by 1/2 s: still bad (no figures)", Setup: setup,
		Rerun: fmt.Sprintf("%s %%; %s %%", second.text(0), half.text(0)), Verdict: judge(second.P50 > 50, half.P50 > 50),
		written: Confirmed,
		Why:     "One answer takes an eighth of a fair sleep of 8 s back, whatever is left, and eight take all of it.",
	}, {
		Claim: "by 1/4500 s: refusals are no huge problem, but a high sleep takes long to come down where 4,500 are " +
			"left, and shares are uneven (no figures)",
		Setup: setup + "; and one client from 10 s at a full bucket",
		Rerun: fmt.Sprintf("%s %%; 4,500 requests in %s h; deviation of requests %s", limit.text(1),
			alone("demo-limit").hours(), spread.text(0)),
		Verdict: judge(limit.P50 < 5, alone("demo-limit").P50 > 3600, spread.P50 > 20), written: Confirmed,
		Why: "Who is once at 10 s needs 45,000 requests to be at none.",
	}, {
		Claim: "by remaining/4500 s: one client eats up what is there (no figure)",
		Setup: "one client, a full bucket, a sleep of 10 s to begin with, 35 ms each way",
		Rerun: alone("demo-remaining").text(0) + " s for 4,500", Verdict: judge(alone("demo-remaining").P50 < 900),
		written: Confirmed,
		Why: "315 s are 4,500 round trips; ten answers take the sleep away but for the floor in its code, a tenth of " +
			"0.8 s.",
	}, {
		Claim: "by remaining·sleep/4500 the ratio of two clients is fine, but they come down too fast; a twentieth of it " +
			"is slower, by a magic number (no figures)",
		Setup: setup + "; and one client from 10 s at a full bucket",
		Rerun: fmt.Sprintf("%s and %s %% refused; 4,500 in %s and %s s", fast.text(1), slow.text(1),
			alone("demo-remaining-sleep").text(0), alone("demo-remaining-sleep-20").text(0)),
		Verdict: judge(slow.P50 < 0.9*fast.P50, alone("demo-remaining-sleep-20").P50 > alone("demo-remaining-sleep").P50),
		written: Confirmed,
		Why:     "Less is refused the more slowly one comes down. The ratio is that of the sleeps, by its making.",
	}, {
		Claim: "divided by how often one was refused, the flappy come down more slowly, but the count has no natural " +
			"reset: it only grows (replaced by the time)", Setup: "2 × 5 threads, an empty bucket, a day",
		Rerun: fmt.Sprintf("CV of shares in the last 16 hours %s %%, longest sleep %s s; by the time %s %% and %s s",
			uneven("demo-remaining-sleep-count").text(0), of(by["a day, demo-remaining-sleep-count"], sleep).text(0),
			uneven(demoName).text(0), of(by["a day, "+demoName], sleep).text(0)),
		Verdict: judge(uneven("demo-remaining-sleep-count").P50 > uneven(demoName).P50), written: Confirmed,
		Why: "Who was doubled often comes down more slowly for good, so shares drift apart. By the time that is forgotten.",
	}}
}

// atFirst tells what it is worth that the first refusal doubles nothing.
func atFirst(by map[string][]fleet.Report) Claim {
	doubled := func(name string) (percent float64) {
		for _, r := range by[name] {
			for _, s := range r.Groups[0].MaxSleep {
				if s > 30 {
					percent += 100 / float64(len(by[name])*len(r.Groups[0].MaxSleep))
				}
			}
		}
		return percent
	}
	kept, without := doubled("slow and fast"), doubled("slow and fast, at first")
	refused, before := of(by["slow and fast"], retry), of(by["slow and fast, at first"], retry)
	return Claim{
		Claim: "not doubling at the first refusal, a slow client is less likely to double, and more requests are refused " +
			"(no figures)",
		Setup: "five clients at 20 s beside five at 4 s, an empty bucket of 2,250 an hour, two minutes",
		Rerun: fmt.Sprintf("%.0f %% of the slow ones double, where it were %.0f; %s %% refused, where it were %s", kept,
			without, refused.text(0), before.text(0)),
		Verdict: judge(kept < 0.9*without, refused.P50 > before.P50), written: InPart,
		Why: "More are refused. But a slow client doubles as often: who sleeps the same again, where nothing is left, is " +
			"refused again.",
	}
}

// eachThread tells what it is worth that one thread doubles for its process.
func eachThread(by map[string][]fleet.Report) Claim {
	kept, without := by["5 × 5"], by["5 × 5, each thread"]
	return Claim{
		Claim: "threads of a process are refused together, so only the first may double, or the sleep would double twice " +
			"(no figure)", Setup: "5 × 5 threads; ours from a full bucket, five hours",
		Rerun: fmt.Sprintf("longest sleep %s s, and %s where each may; %s and %s %% refused", of(kept, sleep).text(0),
			of(without, sleep).text(0), of(kept, retry).text(1), of(without, retry).text(1)),
		Verdict: judge(of(without, sleep).P50 > of(kept, sleep).P50), written: Confirmed,
		Why: "By an eighth. It has its price: who doubles less comes back sooner, and is refused more often.",
	}
}

// quickly reruns another behaviour that could not be tested.
func quickly(by map[string][]fleet.Report) Claim {
	alone := of(by["alone, "+demoName], clear)
	return Claim{
		Claim: "one client consumes all that is there quickly (a wish, no figure)",
		Setup: "one client, a full bucket, a sleep of 10 s to begin with, 35 ms each way",
		Rerun: alone.text(0) + " s for 4,500", Verdict: judge(alone.P50 < 900), written: Confirmed,
		Why: "315 s are 4,500 round trips; the rest is the floor in its code, a tenth of 0.8 s.",
	}
}

// whatIf runs the idea that was not tried.
func whatIf(by map[string][]fleet.Report) Claim {
	change, kept := by["2 × 5 by the change"], by["2 × 5"]
	alone, keptAlone := of(by["alone, demo-change"], clear), of(by["alone, "+demoName], clear)
	refused, before := of(change, retry), of(kept, retry)
	return Claim{
		Claim: "to come down by the change of what remains may fit better, with major hurdles (an idea, not tried)",
		Setup: "2 × 5 threads, an empty bucket, two hours; and one client from 10 s at a full bucket",
		Rerun: fmt.Sprintf("%s %% refused, where the demo has %s; 4,500 in %s h, where it takes %s", refused.text(1),
			before.text(1), alone.hours(), keptAlone.hours()),
		Verdict: judge(refused.P50 < before.P50, alone.P50 > 2*keptAlone.P50), written: Confirmed,
		Why: "Both: a count that falls stops everybody before the bucket is empty; but a bucket that stays full does not " +
			"rise, and nobody hurries.",
	}
}
