module github.com/paceline-go/paceline/bench

go 1.26.0

require (
	github.com/RussellLuo/slidingwindow v0.0.0-20200528002341-535bb99d338b
	github.com/paceline-go/paceline v0.0.0
	golang.org/x/time v0.16.0
)

require github.com/go-redis/redis v6.15.9+incompatible // indirect

replace github.com/paceline-go/paceline => ../
