package dashboard_test

import (
	"os"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/browser"
)

func TestMain(m *testing.M) { os.Exit(browser.Shared(m)) }
