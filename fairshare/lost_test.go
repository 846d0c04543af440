package fairshare

import "testing"

// A process assumes that it is one of a crowd, so that it sends a few times in a window. It sees
// the remainder stand where few sharers keep it. Then it learns n anew, since step by step that
// would take many windows. Near a window's ends, where the level shows little, and where n is not
// so large, it goes step by step all the same.
func TestWindowFindsWhoIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		limit       int64
		n, at, left float64 // of an hour
		lost        bool
	}{
		"one of 1,000, and the level is that of ten": {3600, 1000, 1800, 1807, true},
		"one of 400":                 {3600, 400, 1800, 1807, true},
		"one of 300":                 {3600, 300, 1800, 1807, false},
		"at the level of 200":        {3600, 1000, 1800, 1700, false},
		"as the window begins":       {3600, 1000, 200, 3404, false},
		"one of five":                {3600, 5, 1800, 1807, false},
		"in a smaller quota":         {1200, 150, 600, 1002.6, true}, // b is 6.7, of 12 at most
		"at its beginning":           {1200, 150, 300, 1101, false},  // b is 3.7
		"where so little is no word": {300, 150, 1800, 151.1, false}, // b is 3
	} {
		f := fairOf(t, FairConfig{Kind: FixedWindow, Limit: c.limit, Window: hourly.Window})
		f.n, f.known = c.n, true
		f.hears(c.at-100, c.left+100, 3600-c.at+100)
		f.n = c.n
		s := f.seen
		s.mid, s.left = second(c.at), c.left
		if st := f.window.stand(f, &s); st.lost != c.lost {
			t.Errorf("%s: lost %v, and the level says %.3g of %.3g in ln", name, st.lost, st.price, st.slope)
		}
		if !c.lost {
			continue
		}
		f.meet(&s, 1)
		if f.n > 12 || f.n < 9 {
			t.Errorf("%s: it is one of %.3g then", name, f.n)
		}
	}
}

// An error of one window, such as that of a late replica, is forgotten with it.
func TestNoiseEndsWithItsWindow(t *testing.T) {
	f := fairOf(t, FairConfig{Kind: FixedWindow, Limit: 3600, Window: hourly.Window})
	f.hears(100, 3500, 3500)
	f.noise.product = -400
	if f.hears(200, 3400, 3400); f.noise.sigma() == 0 {
		t.Fatal("forgotten within the window")
	}
	if f.hears(3650, 3580, 3550); f.noise.sigma() != 0 {
		t.Errorf("σ is %v in the next", f.noise.sigma())
	}
}
