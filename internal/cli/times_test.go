package cli

import (
	"testing"
	"time"
)

func TestTimesNameTheirZone(t *testing.T) {
	t.Parallel()
	now := time.Now().Truncate(time.Second)
	zone := now.Format("MST")
	if got, err := time.ParseInLocation(time.DateTime+" MST", moment(now), time.Local); err != nil || !got.Equal(now) {
		t.Errorf("%s is %s, want %s (%v)", moment(now), got, now, err)
	}
	if got, err := time.ParseInLocation(time.DateTime, cell(now), time.Local); err != nil || !got.Equal(now) {
		t.Errorf("%s is %s, want %s (%v)", cell(now), got, now, err)
	}
	if got, want := heading("TIME"), "TIME ("+zone+")"; got != want {
		t.Errorf("heading %q, want %q", got, want)
	}
	for _, month := range []time.Month{time.January, time.July} {
		if got := moment(time.Date(2026, month, 2, 3, 4, 5, 0, time.UTC)); got[len(got)-len(zone):] != zone {
			t.Errorf("%s is not in the zone that a heading names, %s", got, zone)
		}
	}
}
