package cli

import (
	"os"
	"testing"

	"github.com/assent-dev/assent/internal/node/nodetest"
)

func TestMain(m *testing.M) {
	nodetest.Patient()
	os.Exit(m.Run())
}
