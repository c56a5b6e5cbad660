package protocol

func freezeRows() []fieldRow {
	return []fieldRow{
		no(ErrField, "no reason", "reason="),
		no(ErrField, "an empty reason", `reason=""`),
		no(ErrField, "a reason of blanks", `reason=" \n\t"`),
		no(ErrField, "a reason that is too long", "reason="+text(MaxReason+1)),
		no(ErrMalformed, "a reason that is no text", "reason=true"),
		no(ErrToken, "nobody", `by=""`),
		no(ErrToken, "somebody who is no credential", `by="op *"`),
		no(ErrField, "no moment", "at="),

		yes("another reason", `reason="stop"`),
		yes("a reason in other letters", `reason="größer – нет"`),
		yes("a reason of two lines", `reason="a\nb"`),
		yes("a reason at the limit", "reason="+text(MaxReason)),
		yes("a reason in another case of its name beside it", "Reason=1"),
		yes("another operator", `by="on-call_2"`),
		yes("another moment", `at="2030-01-01T00:00:00+02:00"`),
		yes("a field of a later version", `until="2030-01-01T00:00:00Z"`),
	}
}

func confirmRows() []fieldRow {
	return []fieldRow{
		no(ErrField, "no key", "key="),
		no(ErrField, "a layer's key", `key="fleet"`),
		no(ErrField, "a key that only begins alike", `key="freezer.all"`),
		no(ErrField, "a key that is too long", `key="freeze.`+text(MaxName)[1:]),
		no(ErrField, "a key with an escape", `key="freeze.\u001b"`),
		no(ErrField, "no revision", "revision="),
		no(ErrField, "revision zero", "revision=0"),
		no(ErrMalformed, "a revision before the first", "revision=-1"),

		yes("the fleet's key", `key="freeze.all"`),
		yes("an agent's key", `key="freeze.agent.a"`),
		yes("a session's key", `key="freeze.session.czE"`),
		yes("a key that nobody knows yet", `key="freeze.team.a"`),
		yes("the first revision", "revision=1"),
		yes("the last revision", "revision=18446744073709551615"),
		yes("a key in another case of its name beside it", "Key=1"),
		yes("a field of a later version", "wait=1"),
	}
}

func confirmedRows() []fieldRow {
	return append(confirmRows(),
		no(ErrToken, "no gate", `gate=""`), no(ErrToken, "a gate that is no name", `gate="g 1"`),
		yes("another gate", `gate="g1"`), yes("a gate in another case of its name beside it", "Gate=1"))
}
