package baselines

import (
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
	fast, slow := refused("demo-remaining-sleep"), refused("demo-remaining-sleep-20")
	uneven := func(name string) Quantiles {
		return of(by["a day, "+name], func(r *fleet.Report) float64 { return r.SharesSteady.CV })
	}
	second, half, limit := refused("demo-second"), refused("demo-half-second"), refused("demo-limit")
	return []Claim{
		claim("less by 1 s", judge(second.P50 > 50, half.P50 > 50), second.text(0), half.text(0)),
		claim("by 1/4500 s: refusals",
			judge(limit.P50 < 5, alone("demo-limit").P50 > 3600, spread.P50 > 20),
			limit.text(1), alone("demo-limit").hours(), spread.text(0)),
		claim("by remaining/4500 s: one", judge(alone("demo-remaining").P50 < 900),
			alone("demo-remaining").text(0)),
		claim("by remaining·sleep/4500 the ratio",
			judge(slow.P50 < 0.9*fast.P50, alone("demo-remaining-sleep-20").P50 > alone("demo-remaining-sleep").P50),
			fast.text(1), slow.text(1), alone("demo-remaining-sleep").text(0),
			alone("demo-remaining-sleep-20").text(0)),
		claim("divided by the number",
			judge(uneven("demo-remaining-sleep-count").P50 > uneven(demoName).P50),
			uneven("demo-remaining-sleep-count").text(0),
			of(by["a day, demo-remaining-sleep-count"], sleep).text(0), uneven(demoName).text(0),
			of(by["a day, "+demoName], sleep).text(0)),
	}
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
	return claim("not doubling at the first refusal, a slow",
		judge(kept < 0.9*without, refused.P50 > before.P50),
		kept, without, refused.text(0), before.text(0))
}

// eachThread tells what it is worth that one thread doubles for its process.
func eachThread(by map[string][]fleet.Report) Claim {
	kept, without := by["5 × 5"], by["5 × 5, each thread"]
	return claim("threads of a process", judge(of(without, sleep).P50 > of(kept, sleep).P50),
		of(kept, sleep).text(0), of(without, sleep).text(0), of(kept, retry).text(1),
		of(without, retry).text(1))
}

// quickly reruns another behaviour that could not be tested.
func quickly(by map[string][]fleet.Report) Claim {
	alone := of(by["alone, "+demoName], clear)
	return claim("one client uses all", judge(alone.P50 < 900), alone.text(0))
}

// whatIf runs the idea that was not tried.
func whatIf(by map[string][]fleet.Report) Claim {
	change, kept := by["2 × 5 by the change"], by["2 × 5"]
	alone, keptAlone := of(by["alone, demo-change"], clear), of(by["alone, "+demoName], clear)
	refused, before := of(change, retry), of(kept, retry)
	return claim("a fall by the change", judge(refused.P50 < before.P50, alone.P50 > 2*keptAlone.P50),
		refused.text(1), before.text(1), alone.hours(), keptAlone.hours())
}
