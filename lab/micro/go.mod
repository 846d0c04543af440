module github.com/paceline-go/paceline/lab/micro

go 1.26.0

require (
	github.com/RussellLuo/slidingwindow v0.0.0-20200528002341-535bb99d338b
	github.com/failsafe-go/failsafe-go v0.9.8
	github.com/paceline-go/paceline v0.0.0
	go.uber.org/ratelimit v0.3.1
	golang.org/x/time v0.16.0
)

require (
	github.com/benbjohnson/clock v1.3.0 // indirect
	github.com/bits-and-blooms/bitset v1.24.4 // indirect
	github.com/go-redis/redis v6.15.9+incompatible // indirect
)

replace github.com/paceline-go/paceline => ../..
