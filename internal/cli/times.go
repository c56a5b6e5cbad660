package cli

import "time"

// Times are shown to people in this machine's zone as it stands now, and the zone
// is named: records of several nodes are read beside each other. One zone for all
// keeps a table's heading true where summer time began between two rows; --json
// has UTC.

// zoned is t in that zone.
func zoned(t time.Time) time.Time {
	now := time.Now()
	return t.In(time.FixedZone(now.Zone()))
}

// moment is t with its zone, for a sentence.
func moment(t time.Time) string { return zoned(t).Format(time.DateTime + " MST") }

// cell is t for a column whose heading names the zone.
func cell(t time.Time) string { return zoned(t).Format(time.DateTime) }

// heading is a column's heading with the zone of its times.
func heading(name string) string { return name + zoned(time.Time{}).Format(" (MST)") }
