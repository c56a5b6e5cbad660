package protocol

import "strings"

// storedGrantRows: what is stored says whose it is, who gave it and on what.
func storedGrantRows() []fieldRow {
	return []fieldRow{
		no(ErrToken, "no node", "node="),
		no(ErrToken, "no agent", "agent="),
		no(ErrToken, "an agent that is a wildcard", `agent="*"`),
		no(ErrToken, "an agent of two tokens", `agent="a.b"`),
		no(ErrToken, "nobody who gave it", "granted_by="),
		no(ErrField, "no scope", "scope="),
		no(ErrEnum, "an unknown scope", `scope="fleet"`),
		no(ErrField, "no surface", "surface="),
		no(ErrField, "no patterns", "patterns=[]"),
		no(ErrField, "an empty pattern", `patterns=["git *",""]`),
		no(ErrField, "negative uses", "uses=-1"),
		no(ErrField, "an end that is none", `expires="later"`),

		yes("another node", `node="edge-1"`),
		yes("another agent", `agent="ci_7"`),
		yes("another giver", `granted_by="p2"`),
		yes("no session", "session="),
		yes("no root", "root="),
		yes("no project", "project="),
		yes("for the tree", `scope="tree"`),
		yes("for the project", `scope="project"`),
		yes("without end", `expires=""`),
		yes("without a limit", "uses=0"),
		yes("the widest pattern", `patterns=["*"]`),
		yes("many patterns", `patterns=["`+strings.Repeat(`a","`, 63)+`b"]`),
	}
}
