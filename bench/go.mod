module github.com/paceline-go/paceline/bench

go 1.26.0

require (
	github.com/paceline-go/paceline v0.0.0
	golang.org/x/time v0.16.0
)

replace github.com/paceline-go/paceline => ../
