//go:build faults

package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report prints what happened.
func (f *fleet) report() {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	outcomes, waits := map[string]int{}, map[string][]time.Duration{}
	asks, silences, silent, unrecorded := 0, 0, 0, 0
	for _, a := range f.agents {
		for _, t := range a.asks {
			asks++
			silences += t.silences
			unrecorded += t.unrecorded
			if t.silences > 0 {
				silent++
			}
			if t.decision != nil {
				outcomes[string(t.decision.Outcome)]++
				waits[t.kind.class] = append(waits[t.kind.class], t.took)
			}
		}
	}
	fmt.Fprintf(w, "seed\t%d\n", f.seed)
	fmt.Fprintf(w, "time\t%s of kills, %s in all\n", f.lasts, time.Since(f.began).Round(time.Second))
	fmt.Fprintf(w, "asks\t%d by %d agents\n", asks, agents)
	for _, o := range slices.Sorted(maps.Keys(outcomes)) {
		fmt.Fprintf(w, "  %s\t%d\n", o, outcomes[o])
	}
	fmt.Fprintf(w, "kills\t%d\n", total(f.kills))
	for _, k := range slices.Sorted(maps.Keys(f.kills)) {
		fmt.Fprintf(w, "  %s\t%d\n", k, f.kills[k])
	}
	fmt.Fprintf(w, "no gate answered\t%d times, %d asks\n", silences, silent)
	fmt.Fprintf(w, "denied off the record\t%d times\n", unrecorded)
	fmt.Fprintf(w, "answers sent again\t%d\n", f.person.again())
	fmt.Fprintf(w, "wait until decided\tmedian\t99 %%\tlongest\n")
	for _, class := range slices.Sorted(maps.Keys(waits)) {
		all := waits[class]
		slices.Sort(all)
		fmt.Fprintf(w, "  %s (%d)\t%s\t%s\t%s\n", class, len(all), short(all[len(all)/2]), short(all[len(all)*99/100]), short(all[len(all)-1]))
	}
	w.Flush()
	fmt.Print(b.String())
}

func (p *person) again() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

func total(m map[string]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}

func short(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Millisecond)
}
