package bench

var (
	Exponentiality = exponentiality
	Linearity      = linearity
)
