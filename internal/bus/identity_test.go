package bus_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

const (
	account = "AAJGQ57UWI5LXWQKRSBGR7XJXCYQHGOWKKZ3G6PDVWYW57UME33PIQII"
	user    = "UAWSESEEKBBH376TILZK335T2L2VF3MRMPBELZ75VACIMDO346II2UNT"
	stated  = `{"start":"2026-11-30T01:49:08Z","id":33,"acc":"` + account + `","user":"` + user + `","name_tag":"a1","server":"s","rtt":5}`
)

func TestIdentity(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		reply  string
		header []string
		ok     bool
	}{
		"stated by the server":        {"_R_.abc.def", []string{stated}, true},
		"no header":                   {"_R_.abc.def", nil, false},
		"two of them":                 {"_R_.abc.def", []string{stated, stated}, false},
		"a reply inside the account":  {"_INBOX.agent.a1.x", []string{stated}, false},
		"no reply":                    {"", []string{stated}, false},
		"junk":                        {"_R_.abc.def", []string{"junk"}, false},
		"no name":                     {"_R_.abc.def", []string{strings.Replace(stated, `"a1"`, `""`, 1)}, false},
		"a name that is no token":     {"_R_.abc.def", []string{strings.Replace(stated, `"a1"`, `"a.1"`, 1)}, false},
		"two names":                   {"_R_.abc.def", []string{strings.Replace(stated, `"id"`, `"name_tag":"a2","id"`, 1)}, false},
		"a name in other letters":     {"_R_.abc.def", []string{strings.Replace(stated, `name_tag`, `Name_Tag`, 1)}, false},
		"no account":                  {"_R_.abc.def", []string{strings.Replace(stated, account, "", 1)}, false},
		"a user for an account":       {"_R_.abc.def", []string{strings.Replace(stated, account, user, 1)}, false},
		"through another account":     {"_R_.abc.def", []string{strings.Replace(stated, `"id"`, `"svc":"CORE","id"`, 1)}, false},
		"more than there is to know":  {"_R_.abc.def", []string{strings.Replace(stated, `"id"`, `"new":1,"id"`, 1)}, true},
		"a reply that is a wildcard":  {"_R_.>", []string{stated}, false},
		"a reply that only begins so": {"_R_x.abc", []string{stated}, false},
	}
	var known bus.Identities
	for what, row := range rows {
		msg := &nats.Msg{Reply: row.reply, Header: nats.Header{}}
		if row.header != nil {
			msg.Header[bus.HeaderIdentity] = row.header
		}
		id, err := bus.IdentityOf(msg)
		if (err == nil) != row.ok || !row.ok && !errors.Is(err, bus.ErrIdentity) {
			t.Errorf("%s: %v", what, err)
		}
		if row.ok && (id.Name != "a1" || id.Key != user || id.Account != account || id.Client != 33) {
			t.Errorf("%s: %+v", what, id)
		}
		for range 2 { // read, and remembered if it is to be
			if again, aerr := known.Of(msg); again != id || (aerr == nil) != row.ok || !row.ok && !errors.Is(aerr, bus.ErrIdentity) {
				t.Errorf("%s, heard again: %+v, %v", what, again, aerr)
			}
		}
	}
}

// FuzzIdentity: whatever a header says, an identity is whole or there is none.
func FuzzIdentity(f *testing.F) {
	f.Add("_R_.a.b", stated)
	f.Add("_INBOX.agent.a1.x", stated)
	f.Add("_R_.a.b", "{}")
	f.Fuzz(func(t *testing.T, reply, header string) {
		msg := &nats.Msg{Reply: reply, Header: nats.Header{bus.HeaderIdentity: {header}}}
		id, err := bus.IdentityOf(msg)
		if err != nil {
			if id != (bus.Identity{}) {
				t.Errorf("an error and %+v", id)
			}
			return
		}
		if !strings.HasPrefix(reply, "_R_.") || !protocol.ValidToken(id.Name) || !nkeys.IsValidPublicUserKey(id.Key) || !nkeys.IsValidPublicAccountKey(id.Account) {
			t.Errorf("%q gave %+v", header, id)
		}
		for _, s := range []string{id.Name, id.Key, id.Account} {
			// A token needs no escape, though it may have been written with one.
			if !strings.Contains(header, s) && !strings.Contains(header, `\u`) {
				t.Errorf("%q is not in %q", s, header)
			}
		}
	})
}

func TestCredentialsSayWhoseTheyAre(t *testing.T) {
	t.Parallel()
	a, err := node.OpenAuthority(nodetest.Dir(t), "main")
	if err != nil {
		t.Fatal(err)
	}
	good, err := a.Issue(protocol.RoleJudge, "j1", node.IssueOptions{Links: []string{"A", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := bus.ParseCreds(good)
	if err != nil || c.Role != protocol.RoleJudge || c.Name != "j1" || strings.Join(c.Links, " ") != "A b" || !nkeys.IsValidPublicUserKey(c.Key) {
		t.Errorf("%+v %v", c, err)
	}
	// One letter of the token changed: its signature no longer holds.
	at := strings.Index(string(good), "eyJ") + 60
	torn := []byte(string(good))
	torn[at] ^= 1
	for what, b := range map[string][]byte{
		"nothing": nil, "junk": []byte("junk"), "half": good[:len(good)/2], "changed": torn,
		"a token without a key": good[:strings.Index(string(good), "-----BEGIN USER")],
	} {
		_, err := bus.ParseCreds(b)
		if !errors.Is(err, bus.ErrCreds) {
			t.Errorf("%s: %v", what, err)
		}
		if err != nil && strings.Contains(err.Error(), "SU") {
			t.Errorf("%s: the error shows a seed: %v", what, err)
		}
	}
}

// FuzzCreds: what is taken for credentials names a role and a holder that may
// stand in a subject.
func FuzzCreds(f *testing.F) {
	a, err := node.OpenAuthority(nodetest.Dir(f), "main")
	if err != nil {
		f.Fatal(err)
	}
	good, err := a.Issue(protocol.RoleJudge, "j1", node.IssueOptions{Links: []string{"l1"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte("-----BEGIN NATS USER JWT-----\neyJ\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := bus.ParseCreds(b)
		if err == nil && (!protocol.ValidToken(c.Name) || !protocol.ValidToken(string(c.Role))) {
			t.Errorf("%+v", c)
		}
		if err != nil && !errors.Is(err, bus.ErrCreds) {
			t.Error(err)
		}
	})
}

func TestRememberedSendersAreToldApartAndBounded(t *testing.T) {
	t.Parallel()
	var known bus.Identities
	heard := func(client int) {
		t.Helper()
		text := strings.Replace(stated, `"id":33`, fmt.Sprintf(`"id":%d`, client), 1)
		id, err := known.Of(&nats.Msg{Reply: "_R_.abc.def", Header: nats.Header{bus.HeaderIdentity: {text}}})
		if err != nil || id.Client != uint64(client) {
			t.Fatalf("client %d: %+v, %v", client, id, err)
		}
	}
	for client := range bus.MaxIdentities + 10 {
		heard(client)
		heard(client / 2)
		if n := known.Len(); n > bus.MaxIdentities {
			t.Fatalf("%d are remembered", n)
		}
	}
	long := strings.Replace(stated, `"server":"s"`, `"server":"`+strings.Repeat("s", 3000)+`"`, 1)
	before := known.Len()
	if id, err := known.Of(&nats.Msg{Reply: "_R_.abc.def", Header: nats.Header{bus.HeaderIdentity: {long}}}); err != nil || id.Name != "a1" || known.Len() != before {
		t.Errorf("a long one: %+v, %v, %d remembered", id, err, known.Len())
	}
}
