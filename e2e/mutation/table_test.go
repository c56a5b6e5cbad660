package mutation

const (
	gate     = "services/gate"
	human    = "services/terminal/human"
	terminal = "services/terminal"
	words    = "pkg/protocol"
	rules    = "internal/policy"
	layers   = "internal/layers"
	brief    = "services/judge/brief"
	denials  = "services/judge/denials"
	typopath = "services/judge/typopath"
	command  = "services/judge/shellcommand"
)

// table breaks the invariants. Change a row together with the code that it
// breaks; never weaken one so that it fits again.
var table = []mutation{
	{1, "a live allow is not ruled again",
		[]edit{{gate + "/rules.go", "case refused:", "case refused && false:"}},
		gate, "TestInvariant01AStaticDenyIsFinal", "invariant 1"},

	{1, "what the person changed is not what is ruled again",
		[]edit{{gate + "/rules.go", "again, err := g.rule(ctx, edited(p.Ask, end))", "again, err := g.rule(ctx, p.Ask)"}},
		gate, "TestAPersonAnswers", "want deny (denied_by_rule)"},
	{1, "a grant lifts a deny",
		[]edit{
			{rules + "/grant.go", "if plain.Action != Ask || len(grants) == 0", "if plain.Action == Allow || len(grants) == 0"},
			{rules + "/grant.go", "s.clamped != \"\" || e.Action != Ask ||", "s.clamped != \"\" || e.Action == Allow ||"},
			{gate + "/granted.go", "if r.ruling.Action != policy.Ask || ", "if "},
		},
		gate, "TestAGrantLiftsNothingButAnAsk", "want denied_by_rule"},
	{2, "a link that stays silent allows",
		[]edit{{gate + "/consult.go", "last := attempt{failure: protocol.FailureTimeout}",
			"last := attempt{verdict: protocol.Verdict{Ask: c.p.Ask.ID, Verdict: protocol.ChoiceAllow}}"}},
		gate, "TestInvariant02NoAnswerIsNeverYes", "invariant 2"},

	{2, "an answer that does not read is taken for what it could be",
		[]edit{{gate + "/consult.go", "return attempt{failure: protocol.FailureMalformed}", "return attempt{verdict: protocol.Verdict{Ask: p.Ask.ID, Verdict: protocol.ChoiceAllow}}"}},
		gate, "TestInvariant02NoAnswerIsNeverYes", "invariant 2"},
	{2, "a link's failure is not counted",
		[]edit{{gate + "/chain.go", "g.count(\"link\", t.Failure)", "g.log.Debug(\"not counted\")"}},
		gate, "TestInvariant02NoAnswerIsNeverYes", "failures of links were counted"},
	{2, "an allow of nobody is an allow",
		[]edit{{gate + "/ending.go", "role != protocol.TerminalHuman || v.Approver == \"\"", "role != protocol.TerminalHuman"}},
		gate, "TestInvariant02NoAnswerIsNeverYes", "invariant 2"},
	{2, "what a model says of a shell text is believed",
		[]edit{{command + "/faithful.go", "return p.text == strings.TrimSpace(claim)", "return p.text != strings.TrimSpace(claim)+\"\\n\""}},
		command, "TestNoLieAboutATextIsBelieved", "passes for"},
	{2, "a command in a shell text that the rules ask about is taken for an allowed one",
		[]edit{{command + "/engine.go", "if c.State > t.worst.state {", "if c.State > protocol.ActionAsk {"}},
		command, "TestNoLieAboutATextIsBelieved", "is allowed"},
	{3, "a terminal's word is a link's word",
		[]edit{
			{words + "/words.go", "type FinalChoice uint8", "type FinalChoice = Choice"},
			{words + "/words.go", "func (c FinalChoice) String() string { return word(finalWords, c) }", ""},
			{words + "/words.go", "func (c FinalChoice) Valid() bool { return c == FinalAllow || c == FinalDeny }", ""},
			{words + "/words.go", "func (c FinalChoice) MarshalText() ([]byte, error) { return writeWord(finalWords, \"verdict\", c) }", ""},
			{words + "/words.go", "func (c *FinalChoice) UnmarshalText(b []byte) error { return readWord(finalWords, \"verdict\", b, c) }", ""},
		},
		words, "TestATerminalThatDefersDoesNotCompile", "it compiles"},

	{3, "a terminal's answer that does not read is an allow",
		[]edit{{gate + "/terminal.go", "return ending{}, backoff.Permanent(errors.Join(verr, perr))", "_, _ = verr, errors.ErrUnsupported\n\treturn byTerminal(p.Role, protocol.TerminalVerdict{Verdict: protocol.FinalAllow, Outcome: protocol.AllowedByHuman, Approver: \"x\"}), nil"}},
		gate, "TestInvariant03TheTerminalEndsTheAsk", "invariant 3"},
	{4, "links are asked from the last to the first",
		[]edit{{gate + "/chain.go", "p.Chain[len(p.Trail)])\n", "p.Chain[len(p.Chain)-1-len(p.Trail)])\n"}},
		gate, "TestInvariant04ConfigOrderWins", "invariant 4"},

	{5, "every link that runs is in the chain",
		[]edit{{gate + "/desk.go", "role, chain := g.role(c.ask, s), s.Chain()", "role, chain := g.role(c.ask, s), append(s.Chain(), g.links.running()...)"}},
		gate, "TestInvariant05RegistrationGrantsNothing", "invariant 5"},

	{6, "a missing link denies",
		[]edit{{gate + "/consult.go", "return attempt{failure: protocol.FailureUnregistered}",
			"return attempt{verdict: protocol.Verdict{Ask: p.Ask.ID, Verdict: protocol.ChoiceDeny, Reason: \"missing\"}}"}},
		gate, "TestInvariant06AMissingLinkIsSkipped", "invariant 6"},

	{6, "a missing link goes unrecorded",
		[]edit{{gate + "/chain.go", "g.review.unregistered(p.Ask.ID, link, t.Reason)", "g.log.Debug(\"not recorded\")"}},
		gate, "TestInvariant06AMissingLinkIsSkipped", "links are missing"},
	{7, "an allow outside the envelope stands",
		[]edit{{gate + "/chain.go", "if !ok {\n\t\tt.Verdict", "if !ok && why == \"\" {\n\t\tt.Verdict"}},
		gate, "TestInvariant07TheEnvelopeIsTheGates", "invariant 7"},

	{7, "an excluded surface is delegated all the same",
		[]edit{{rules + "/envelope.go", "if w.match(f) {\n\t\t\t\treturn false", "if w.match(f) {\n\t\t\t\tcontinue"}},
		gate, "TestInvariant07TheEnvelopeIsTheGates", "invariant 7"},
	{7, "a link may allow what only a person answers",
		[]edit{{rules + "/envelope.go", "if e.HumanOnly {", "if e.HumanOnly && e.Surface == \"\" {"}},
		gate, "TestInvariant07TheEnvelopeIsTheGates", "invariant 7"},
	{7, "a grant answers what only a person answers",
		[]edit{{rules + "/grant.go", "|| e.Floor || e.HumanOnly {", "|| e.Floor {"}},
		gate, "TestInvariant07TheEnvelopeIsTheGates", "invariant 7"},
	{7, "a link may allow what looks like a secret",
		[]edit{{rules + "/envelope.go", "if secret != \"\" {", "if secret == \"@\" {"}},
		gate, "TestInvariant07TheEnvelopeIsTheGates", "invariant 7"},
	{8, "a capability outlives its verdict",
		[]edit{
			{gate + "/capability.go", "delete(t.out, c.tokens[0])", ""},
			{gate + "/capability.go", "delete(t.out, c.tokens[1])", "_ = c"},
		},
		gate, "TestInvariant08ALinkSeesOnlyWhatItIsHanded", "invariant 8"},
	{8, "a capability is whoever's who uses it",
		[]edit{{gate + "/capability.go", "} else if c.inbox != owner {", "} else if c.inbox == \"\" {"}},
		gate, "TestInvariant08ALinkSeesOnlyWhatItIsHanded", "invariant 8"},
	{8, "the token of the log opens the query",
		[]edit{{gate + "/capability.go", "kind == protocol.KindQuery && token != c.tokens[0] || ", ""}},
		gate, "TestInvariant08ALinkSeesOnlyWhatItIsHanded", "invariant 8"},
	{8, "a link writes the gate's own events",
		[]edit{{gate + "/capability.go", "if gatesOwn(r.Event) {", "if gatesOwn(r.Event) && r.Event == \"\" {"}},
		gate, "TestInvariant08ALinkSeesOnlyWhatItIsHanded", "invariant 8"},
	{8, "a model reads what nobody sees",
		[]edit{{brief + "/data.go", "return visible(string(data)), nil", "return string(data), nil"}},
		brief, "TestInjectionsAreData", "stands raw in"},
	{8, "a model is shown what speaks for the call",
		[]edit{{brief + "/input.go", "case texts != nil && slices.Contains(shownKeys, name):", "case texts != nil:"}},
		brief, "TestWhatAModelNeverSees", "NEVERSHOWN"},
	{8, "facts that are too long are cut",
		[]edit{
			{brief + "/brief.go", "if size := rawSize(r, in); size > limit {", "if size := rawSize(r, in); size < 0 {"},
			{brief + "/brief.go", "if len(data) > limit {", "if data = data[:min(limit, len(data))]; len(data) > limit {"},
		},
		brief, "TestLimit", "one byte short"},
	{8, "a model is shown a secret",
		[]edit{{brief + "/facts.go", "Cwd: m.mask(factCwd, r.Ask.Cwd)", "Cwd: r.Ask.Cwd"}},
		brief, "TestNoPlaceShowsASecret", "the working directory"},

	{9, "a denial holds under every policy",
		[]edit{{denials + "/denials.go", "subject{config, r.PolicyRevision, ask,", "subject{config, 1, ask,"}},
		denials, "TestWhatIsTheSame", "the policy makes the key of nothing"},
	{9, "a denial of a script outlives the script",
		[]edit{{denials + "/script.go", "|| !slices.Contains(plainPrograms, u.Program())", ""}},
		denials, "TestScripts", "may run a script"},
	{9, "a judge that was not sure is remembered as one that denied",
		[]edit{
			{typopath + "/typopath.go", "if f.teaching != \"\" {\n\t\tj.denied", "if f.detail += f.teaching; f.detail != \"\" {\n\t\tj.denied"},
			{typopath + "/typopath.go", "j.set.Denials.Deny(key, f.teaching)", "j.set.Denials.Deny(key, f.detail)"},
		},
		typopath, "TestADenialIsRemembered", "the model was asked 1 times"},
	{9, "what a link allowed once is allowed",
		[]edit{
			{gate + "/gate.go", "import (\n", "import (\n\t\"sync\"\n"},
			{gate + "/gate.go", "// Decide takes", "var remembered sync.Map\n\n// Decide takes"},
			{gate + "/gate.go", "ruled = g.granted(ctx, c, ruled)\n", "ruled = g.granted(ctx, c, ruled)\n\tif _, ok := remembered.Load(string(c.ask.Tool.Input)); ok {\n\t\truled.ruling.Action = 3\n\t}\n"},
			{gate + "/gate.go", "if err := g.remember(ctx, d); err != nil {", "if d.Outcome == protocol.AllowedByLink {\n\t\tremembered.Store(string(p.Ask.Tool.Input), true)\n\t}\n\tif err := g.remember(ctx, d); err != nil {"},
		},
		gate, "TestInvariant09AModelsAllowIsNotRemembered", "invariant 9"},
	{9, "a link's allow makes a grant",
		[]edit{{gate + "/granted.go", "if d.Grant == nil {\n", "if d.Outcome == protocol.AllowedByLink {\n\t\treturn g.grants.Put(ctx, protocol.Grant{Scope: protocol.ScopeAgent, Surface: d.Surface, Patterns: []string{d.Value}, Node: d.Node, Agent: d.Agent, GrantedBy: d.DecidedBy.Name, Ask: d.Ask})\n\t}\n\tif d.Grant == nil {\n"}},
		gate, "TestInvariant09AModelsAllowIsNotRemembered", "invariant 9"},

	{10, "who ends an ask is found when the terminal is asked",
		[]edit{{gate + "/terminal.go", "p := h.item().Pending\n\tif p.Role == protocol.TerminalParent {", "p := h.item().Pending\n\tp.Role = g.role(p.Ask, g.policy.current())\n\tif p.Role == protocol.TerminalParent {"}},
		gate, "TestInvariant10TheRoleIsFixedBeforeTheFirstLink", "invariant 10"},
	{10, "the chain is that of the moment",
		[]edit{{gate + "/chain.go", "p := h.item().Pending\n", "p := h.item().Pending\n\tp.Chain = g.policy.current().Chain()\n"}},
		gate, "TestInvariant10TheRoleIsFixedBeforeTheFirstLink", "invariant 10"},
	{10, "a node that relays asks its own links as well",
		[]edit{{gate + "/desk.go", "chain = nil //", "chain = s.Chain() //"}},
		gate, "TestInvariant10TheRoleIsFixedBeforeTheFirstLink", "invariant 10"},

	{11, "the record takes a second decision",
		[]edit{{gate + "/record.go", "ExpectedLastSubjSeqSubjHeader: {all}", "ExpectedLastSubjSeqSubjHeader: {all + \".none\"}"}},
		gate, "TestInvariant11OneDecisionPerAsk", "invariant 11"},
	{11, "a second answer replaces the first",
		[]edit{{human + "/human.go", "case p.Verdict != nil:\n", "case p.Verdict != nil && p.Ask.ID == \"\":\n"}},
		terminal, "TestTheFirstAnswerWins", "20 were accepted"},

	{12, "what the stream does not acknowledge is heard all the same",
		[]edit{{gate + "/record.go", "if err == nil {\n\t\t\treturn d, msg.Data, nil", "if err == nil || !taken(err) && attempt == recordAttempts {\n\t\t\treturn d, msg.Data, nil"}},
		gate, "TestInvariant12NoAllowWithoutARecord", "invariant 12"},

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
