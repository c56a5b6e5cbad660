package bundle

import (
	"testing"

	"github.com/assent-dev/assent/internal/module"
)

func BenchmarkFile(b *testing.B) {
	for b.Loop() {
		if _, err := File("../../../examples/modules/release.ts", module.LevelUser); err != nil {
			b.Fatal(err)
		}
	}
}
