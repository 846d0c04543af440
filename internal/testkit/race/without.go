package race

import "testing"

// Without skips a test under the race detector, which would find nothing in it at ten times the price.
// check runs it once more without.
func Without(t testing.TB) {
	t.Helper()
	if Enabled {
		t.Skip("it runs without the race detector")
	}
}
