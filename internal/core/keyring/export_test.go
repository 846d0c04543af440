package keyring

// Believes reports whether one more request is taken to be at fault itself.
func Believes(row, own int) bool { return (&Ring{row: row, own: own}).believes() }
