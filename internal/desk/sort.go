package desk

import (
	"cmp"
	"slices"

	"github.com/assent-dev/assent/internal/pending"
)

func sortByAge(items []pending.Item) {
	slices.SortFunc(items, func(a, b pending.Item) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Ask.ID, b.Ask.ID))
	})
}
