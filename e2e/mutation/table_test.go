package mutation

const (
	gate     = "services/gate"
	human    = "services/terminal/human"
	terminal = "services/terminal"
	words    = "pkg/protocol"
	rules    = "internal/policy"
	layers   = "internal/layers"
)

// table breaks the invariants. Change a row together with the code that it
// breaks; never weaken one so that it fits again.
var table = []mutation{
	{1, "a live allow is not ruled again",
		[]edit{{gate + "/rules.go", "case refused:", "case refused && false:"}},
		gate, "TestADenyThatComesBeforeTheSettlementWins", "decision is allow"},

	{2, "a link that stays silent allows",
		[]edit{{gate + "/chain.go", "case <-ctx.Done():\n\t\t\treturn protocol.Verdict{}, protocol.FailureTimeout",
			"case <-ctx.Done():\n\t\t\treturn protocol.Verdict{Ask: p.Ask.ID, Verdict: protocol.ChoiceAllow}, \"\""}},
		gate, "TestWhateverIsNoVerdictInTimeDefers", "decision is allow"},

	{3, "a terminal's word is a link's word",
		[]edit{
			{words + "/words.go", "type FinalChoice uint8", "type FinalChoice = Choice"},
			{words + "/words.go", "func (c FinalChoice) String() string { return word(finalWords, c) }", ""},
			{words + "/words.go", "func (c FinalChoice) Valid() bool { return c == FinalAllow || c == FinalDeny }", ""},
			{words + "/words.go", "func (c FinalChoice) MarshalText() ([]byte, error) { return writeWord(finalWords, \"verdict\", c) }", ""},
			{words + "/words.go", "func (c *FinalChoice) UnmarshalText(b []byte) error { return readWord(finalWords, \"verdict\", b, c) }", ""},
		},
		words, "TestATerminalThatDefersDoesNotCompile", "it compiles"},

	{4, "links are asked from the last to the first",
		[]edit{{gate + "/chain.go", "p.Chain[len(p.Trail)])\n", "p.Chain[len(p.Chain)-1-len(p.Trail)])\n"}},
		gate, "TestLinksAreAskedInConfigOrder", "trail is"},

	{5, "every link that runs is in the chain",
		[]edit{{gate + "/desk.go", "Chain: s.Chain(),", "Chain: append(s.Chain(), g.links.running()...),"}},
		gate, "TestNothingIsSaidOfAnEmptyOrUnseenChain", "allow"},

	{6, "a missing link denies",
		[]edit{{gate + "/chain.go", "return protocol.Verdict{}, protocol.FailureUnregistered",
			"return protocol.Verdict{Ask: p.Ask.ID, Verdict: protocol.ChoiceDeny, Reason: \"missing\"}, \"\""}},
		gate, "TestLinksAreAskedInConfigOrder", "denied_by_link"},

	{7, "an allow outside the envelope stands",
		[]edit{{gate + "/chain.go", "if !ok {\n\t\tt.Verdict", "if !ok && why == \"\" {\n\t\tt.Verdict"}},
		gate, "TestTheEnvelopeIsTheGates", "decision is allow"},

	{8, "a capability outlives its verdict",
		[]edit{
			{gate + "/capability.go", "delete(t.out, c.tokens[0])", ""},
			{gate + "/capability.go", "delete(t.out, c.tokens[1])", "_ = c"},
		},
		gate, "TestACapabilityIsOneWorkersForOneAsk", "query: <nil>"},

	{11, "the record takes a second decision",
		[]edit{{gate + "/record.go", "jetstream.WithExpectLastSequenceForSubject(0, all))", "jetstream.WithExpectLastSequenceForSubject(0, all+\".none\"))"}},
		gate, "TestTwoGatesThatRaceMakeOneRecord", "2 records"},
	{11, "a second answer replaces the first",
		[]edit{{human + "/human.go", "case p.Verdict != nil:\n", "case p.Verdict != nil && p.Ask.ID == \"\":\n"}},
		terminal, "TestTheFirstAnswerWins", "20 were accepted"},

	{12, "what the stream does not acknowledge is heard all the same",
		[]edit{{gate + "/record.go", "return protocol.Decision{}, fmt.Errorf(\"recording decision on %s: %w: %w\", d.Ask, errUnrecorded, err)", "return d, nil"}},
		gate, "TestNoDecisionIsHeardThatTheStreamRefuses", "decision is allow"},

	{13, "an ask whose owner died stays that gate's",
		[]edit{{gate + "/mirror.go", "return !now.Before(s.lease)", "return false"}},
		gate, "TestDue", "its owner fell silent: false"},
	{13, "a person is asked again by every gate that comes along",
		[]edit{{human + "/human.go", "if first = p.Taken.IsZero() || p.Taken.Equal(now); first {", "if first = true; first {"}},
		terminal, "TestAPersonIsAskedOnce", " prompts"},

	{14, "the revision depends on the order in which layers came",
		[]edit{{layers + "/book.go", "b.revision = max(b.revision, e.Revision)", "b.revision = e.Revision"}},
		layers, "TestABookIsTheSameWhateverTheOrder", "revisions 3 and 1"},

	{15, "the name in the subject is believed, whoever sent it",
		[]edit{{gate + "/serve.go", "if id.Name != subject.Tokens[0] {", "if id.Name = subject.Tokens[0]; id.Name == \"\" {"}},
		gate, "TestWhatTheBorderDidNotMakeIsNoAsk", "from another: 1 records, want 0"},

	{16, "a project's layer is trusted by whoever names it",
		[]edit{{rules + "/set.go", "add(sel.project, sel.trustsProject)", "add(sel.project, true)"}},
		gate, "TestLayersLoosenWhereTheyAreTrustedAndTightenEverywhere", "decision is allow"},
}
