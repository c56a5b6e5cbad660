package shellview

import "testing"

func BenchmarkParse(b *testing.B) {
	for name, text := range map[string]string{
		"plain": "git push origin main",
		"list":  "cd app && FOO=1 sudo -u ci git -C x push --tags 2>&1 | tee log; bash -c 'npm ci && npm test'",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Parse(text, ""); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
