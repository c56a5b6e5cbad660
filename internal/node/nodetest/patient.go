package nodetest

import (
	"flag"
	"runtime"
	"strconv"
)

// atOnce is how many tests that mostly wait run on one processor.
const atOnce = 3

// Patient lets the tests of a package that mostly wait (for leases, deadlines,
// other processes) run side by side, more of them than there are processors,
// unless the command line says how many. TestMain calls it first.
func Patient() {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if !asked {
		// The flag takes any number from 1 on.
		_ = flag.Set("test.parallel", strconv.Itoa(atOnce*runtime.GOMAXPROCS(0)))
	}
}
