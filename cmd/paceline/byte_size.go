package main

import "github.com/paceline-go/paceline/internal/text"

// byteSize is a flag for a number of bytes.
type byteSize int64

func (b *byteSize) Set(s string) error {
	n, err := text.ParseBytes(s)
	if err == nil {
		*b = byteSize(n)
	}
	return err
}

func (b *byteSize) String() string { return text.Bytes(int64(*b)) }

func (b *byteSize) Type() string { return "size" }
