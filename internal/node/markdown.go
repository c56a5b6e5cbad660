package node

import (
	"cmp"
	"fmt"
	"strings"
)

// Markdown is the permission table for people, for node.
func Markdown(node string) string {
	var b strings.Builder
	for _, r := range Rights() {
		fmt.Fprintf(&b, "## %s (account %s)\n\n%s.\n\n", r.Role, r.Account, sentence(r.For))
		writeSubjects(&b, "Publishes", r.Publish, node)
		writeSubjects(&b, "Subscribes", r.Subscribe, node)
		if r.Responses != nil {
			fmt.Fprintf(&b, "Answers what it receives, wherever that asks for the answer: up to %d messages within %s.\n\n", r.Responses.Max, r.Responses.Within)
		}
	}
	b.WriteString("## Account borders\n\n")
	b.WriteString("Nothing else crosses from one account into another. A request gets a reply subject made by the server and a header that states who sent it.\n\n")
	b.WriteString("| account | its subject | in CORE | kind | what |\n|---|---|---|---|---|\n")
	for _, x := range Borders() {
		fmt.Fprintf(&b, "| %s | `%s` | `%s` | %s | %s |\n", x.Account, fill(cmp.Or(x.Local, x.Subject), node), fill(x.Subject, node), x.kind(), x.For)
	}
	return b.String()
}

func (b Border) kind() string {
	switch {
	case b.Notice:
		return "notice"
	case b.Streamed:
		return "request, several replies"
	default:
		return "request, one reply"
	}
}

func writeSubjects(b *strings.Builder, verb string, subjects []string, node string) {
	if len(subjects) == 0 {
		fmt.Fprintf(b, "%s nothing.\n\n", verb)
		return
	}
	fmt.Fprintf(b, "%s:\n\n", verb)
	for _, s := range subjects {
		fmt.Fprintf(b, "- `%s`\n", fill(s, node))
	}
	b.WriteString("\n")
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
