package fleet

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

// evil is the list that each attack tries to bring in force: without the module
// that stands in the way, and newer than what stands.
func evil(serial uint64) List { return List{V: listVersion, Serial: serial} }

// credsOf issues credentials of an authority.
func credsOf(t *testing.T, a *node.Authority, role protocol.Role, name string) bus.Creds {
	t.Helper()
	opts := node.IssueOptions{Again: true}
	return must(bus.ParseCreds(must(a.Issue(role, name, opts))(t)))(t)
}

// forged is a credential that somebody has signed with a key of his own, and that
// says everything else an operator's would.
func forged(t *testing.T, account string) bus.Creds {
	t.Helper()
	issuer := must(nkeys.CreateAccount())(t)
	user := must(nkeys.CreateUser())(t)
	c := jwt.NewUserClaims(must(user.PublicKey())(t))
	c.Name, c.IssuerAccount = "op", account
	c.Tags = append(c.Tags, "role:operator")
	text := must(jwt.FormatUserConfig(must(c.Encode(issuer))(t), must(user.Seed())(t)))(t)
	return must(bus.ParseCreds(text))(t)
}

func resealed(t *testing.T, data []byte, change func(*sealed)) []byte {
	t.Helper()
	var s sealed
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	change(&s)
	return must(json.Marshal(s))(t)
}

// TestNobodyButAnOperatorOfThisNodeChangesTheModules, whatever he can write.
func TestNobodyButAnOperatorOfThisNodeChangesTheModules(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.push(src("guard", "g0"))
	old := r.stored()
	r.push(src("guard", "g1"))
	good := r.stored()
	serial := must(r.store.Get(t.Context()))(t).List.Serial + 100
	other := must(node.OpenAuthority(nodetest.Dir(t), nodetest.Name))(t)
	own := r.Authority()
	sealAs := func(c bus.Creds) []byte { return must(seal(c, evil(serial)))(t) }
	rows := []struct {
		name string
		put  []byte
		want error
	}{
		{"nothing at all", []byte{}, ErrSeal},
		{"a list without a signature", []byte(`{"v":1,"serial":9,"modules":[]}`), ErrSeal},
		{"a list of a version to come", resealed(t, sealAs(r.creds), func(s *sealed) { s.V = 2 }), ErrSeal},
		{"a gate's signature", sealAs(credsOf(t, own, protocol.RoleGate, "g9")), ErrSeal},
		{"a terminal's signature", sealAs(credsOf(t, own, protocol.RoleTerminal, "t9")), ErrSeal},
		{"an agent's signature", sealAs(credsOf(t, own, protocol.RoleAgent, "ci")), ErrSeal},
		{"an approver's signature", sealAs(credsOf(t, own, protocol.RoleApprover, "p9")), ErrSeal},
		{"an operator of another node of this name", sealAs(credsOf(t, other, protocol.RoleOperator, "op")), ErrSeal},
		{"a token that its holder has made", sealAs(forged(t, r.creds.Account)), ErrSeal},
		{"an operator's token with another's signature", resealed(t, sealAs(forged(t, r.creds.Account)), func(s *sealed) { s.Token = r.creds.Token() }), ErrSeal},
		{"another text under an operator's signature", resealed(t, good, func(s *sealed) { s.List = string(must(json.Marshal(evil(serial)))(t)) }), ErrSeal},
		{"a byte more of it", resealed(t, good, func(s *sealed) { s.List += " " }), ErrSeal},
		{"no signature", resealed(t, good, func(s *sealed) { s.Signature = nil }), ErrSeal},
		{"a key twice", bytes.Replace(good, []byte(`"v":1`), []byte(`"v":1,"v":1`), 1), ErrSeal},
		{"the list that was in force before", old, ErrOld},
	}
	running := r.follow("g1")
	running.sees([]string{"guard=g1"})
	for _, row := range rows {
		r.put(row.put)
		// Whoever runs, and whoever starts now, keeps to what was signed last.
		running.sees([]string{"guard=g1"}, row.want.Error())
		if now := must(r.store.Get(t.Context()))(t); !errors.Is(now.Err, row.want) || now.List.Modules[0].Version != src("", "g1").Version() {
			t.Errorf("%s: an operator is told %v", row.name, now.Err)
		}
	}
	if err := r.store.kv.Delete(t.Context(), protocol.KeyModules); err != nil {
		t.Fatal(err)
	}
	running.sees([]string{"guard=g1"}, ErrRemoved.Error())
	r.follow("g2").sees([]string{"guard=g1"}, ErrRemoved.Error())
	if err := r.store.kv.Purge(t.Context(), protocol.KeyModules); err != nil {
		t.Fatal(err)
	}
	running.sees([]string{"guard=g1"}, ErrRemoved.Error())
}

func TestAnOperatorMendsAListThatDoesNotCount(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.push(src("guard", "g1"))
	g := r.follow("g1")
	for _, junk := range []string{"junk", "{}"} {
		r.put([]byte(junk))
		g.sees([]string{"guard=g1"}, ErrSeal.Error())
		// Nothing else would change: what was in force is signed anew.
		if now := r.push(src("guard", "g1")); now.Err != nil {
			t.Error(now.Err)
		}
		g.sees([]string{"guard=g1"})
	}
	if err := r.store.kv.Delete(t.Context(), protocol.KeyModules); err != nil {
		t.Fatal(err)
	}
	g.sees([]string{"guard=g1"}, ErrRemoved.Error())
	must(r.store.Remove(t.Context(), "guard"))(t)
	g.sees(nil)
}

// TestWhoseWordCounts: every operator's, also of one whose credentials have run
// out or were revoked since. Modules only tighten: a list that ended by itself
// would loosen.
func TestWhoseWordCounts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	short := must(bus.ParseCreds(must(r.Authority().Issue(protocol.RoleOperator, "brief", node.IssueOptions{Expires: time.Now().Add(1500 * time.Millisecond)}))(t)))(t)
	gate := credsOf(t, r.Authority(), protocol.RoleGate, "g1")
	list := List{V: listVersion, Serial: 1, Modules: []Entry{{Name: "a", Version: src("a", "x").Version(), Size: 1, Enabled: true, PushedBy: "brief", PushedAt: time.Now()}}}
	data := must(seal(short, list))(t)
	nodetest.CheckFor(t, 10*time.Second, 50*time.Millisecond, func() error {
		if time.Now().Before(short.Expires) {
			return errors.New("the credentials still count")
		}
		return nil
	})
	for name, trust := range map[string]Trust{"a gate's": TrustOf(gate), "an operator's": TrustOf(r.creds)} {
		if l, by, err := trust.open(data); err != nil || by != "brief" || len(l.Modules) != 1 {
			t.Errorf("%s trust: %+v %s %v", name, l, by, err)
		}
	}
	for name, trust := range map[string]Trust{
		"nobody's":               {},
		"of an agent":            TrustOf(credsOf(t, r.Authority(), protocol.RoleAgent, "ci")),
		"without a signer":       {Account: gate.Account},
		"without an account":     {Signers: gate.Signers},
		"of another account":     {Account: gate.Signers[0], Signers: gate.Signers},
		"in another key":         {Account: gate.Account, Signers: []string{gate.Account}},
		"of a gate of elsewhere": TrustOf(credsOf(t, must(node.OpenAuthority(nodetest.Dir(t), nodetest.Name))(t), protocol.RoleGate, "g1")),
	} {
		if _, _, err := trust.open(data); !errors.Is(err, ErrSeal) {
			t.Errorf("trust %s: %v", name, err)
		}
	}
}

func TestAGateThatKnowsNobodysSignatureLoadsNothingAndSaysSo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	nc, _ := r.as(protocol.RoleGate, "g1")
	g := r.followAs(nc, Trust{})
	g.sees(nil) // there is nothing that it could not read
	r.push(src("a", "a1"))
	g.sees(nil, "creds issue --role gate")
}

// FuzzOpen: whatever bytes stand there, what opens is what an operator signed.
func FuzzOpen(f *testing.F) {
	dir := f.TempDir() + "/store"
	a := must(node.OpenAuthority(dir, nodetest.Name))(f)
	op := must(bus.ParseCreds(must(a.Issue(protocol.RoleOperator, "op", node.IssueOptions{}))(f)))(f)
	gate := must(bus.ParseCreds(must(a.Issue(protocol.RoleGate, "g1", node.IssueOptions{}))(f)))(f)
	list := List{V: listVersion, Serial: 7, Modules: []Entry{{Name: "a", Version: src("a", "x").Version(), Size: 1, PushedBy: "op", PushedAt: time.Unix(1, 0).UTC()}}}
	data := must(seal(op, list))(f)
	f.Add(data)
	f.Add([]byte(`{"v":1}`))
	f.Add(data[:len(data)/2])
	trust := TrustOf(gate)
	f.Fuzz(func(t *testing.T, data []byte) {
		l, by, err := trust.open(data)
		if err != nil {
			return
		}
		if by != "op" || l.Serial != 7 || len(l.Modules) != 1 || l.Modules[0] != list.Modules[0] {
			t.Fatalf("opened %+v by %s from %q", l, by, data)
		}
	})
}
