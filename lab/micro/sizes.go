package micro

import (
	"unsafe"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/window"
)

const (
	sizeOfLog     = int(unsafe.Sizeof(window.Log{}))
	sizeOfRuns    = int(unsafe.Sizeof(window.Runs{}))
	sizeOfSlots   = int(unsafe.Sizeof(window.Slots{}))
	sizeOfRolling = int(unsafe.Sizeof(limit.Rolling{}))
	sizeOfGate    = int(unsafe.Sizeof(paceline.Gate{}))
)
