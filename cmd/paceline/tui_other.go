//go:build !unix

package main

import (
	"errors"

	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/screen"
)

func canFill(*screen.Screen) error { return errors.New("it is not for Windows") }

func (f *runFlags) fill(*run.Run, *runInput, *screen.Screen) (leave func()) { return func() {} }
