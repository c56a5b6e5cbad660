package denials

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
)

func request() link.Request {
	return link.Request{
		Ask: protocol.Ask{V: 1, ID: "01K6AAAAAAAAAAAAAAAAAAAAAA", Agent: "ci-42", AgentName: "reviewer", Source: protocol.SourceToolCall, Session: protocol.Session{ID: "s1"},
			Cwd: "/repo", Home: "/home/dev", Platform: "linux", Intent: "clean up", Project: protocol.Project{ID: "p", Root: "/repo", Digest: "sha256:1"},
			Paths: []protocol.Path{{Raw: "x", Resolved: "/repo/x"}},
			Tool:  protocol.Tool{Name: "bash", CallID: "t1", Input: jsontext.Value(`{"command":"rm -rf /srv","timeout":1.0}`)}},
		Asks:           []protocol.Entry{{Surface: "bash", Value: "rm -rf /srv", MatchedPattern: "*", Origin: "fleet"}},
		Units:          []protocol.Unit{{Text: "rm -rf /srv", Decision: protocol.ActionAsk, Pattern: "*"}},
		Deadline:       time.Unix(1, 0),
		PolicyRevision: 12,
	}
}

// TestWhatIsTheSame holds each change of an ask against the key of the first.
func TestWhatIsTheSame(t *testing.T) {
	t.Parallel()
	same := map[string]func(*link.Request){
		"nothing":                    func(*link.Request) {},
		"the ask's id":               func(r *link.Request) { r.Ask.ID = "01K6BBBBBBBBBBBBBBBBBBBBBB" },
		"the session":                func(r *link.Request) { r.Ask.Session = protocol.Session{ID: "s2", Parent: "s1", Interactive: true} },
		"the call's id":              func(r *link.Request) { r.Ask.Tool.CallID = "t2" },
		"the time":                   func(r *link.Request) { r.Deadline = time.Unix(9, 0) },
		"the patience":               func(r *link.Request) { r.Ask.MaxWaitMS = 9 },
		"the order of the arguments": func(r *link.Request) { r.Ask.Tool.Input = jsontext.Value(`{"timeout":1.0,"command":"rm -rf /srv"}`) },
		"the blanks in the arguments": func(r *link.Request) {
			r.Ask.Tool.Input = jsontext.Value(`{ "command" : "rm -rf \/srv", "timeout":1.0}`)
		},
		"capabilities": func(r *link.Request) { r.Query, r.Log = nil, nil },
	}
	other := map[string]func(*link.Request){
		"the command":             func(r *link.Request) { r.Ask.Tool.Input = jsontext.Value(`{"command":"rm -rf /tmp","timeout":1.0}`) },
		"an argument":             func(r *link.Request) { r.Ask.Tool.Input = jsontext.Value(`{"command":"rm -rf /srv","timeout":2.0}`) },
		"a number's spelling":     func(r *link.Request) { r.Ask.Tool.Input = jsontext.Value(`{"command":"rm -rf /srv","timeout":1}`) },
		"the tool":                func(r *link.Request) { r.Ask.Tool.Name = "shell" },
		"the agent":               func(r *link.Request) { r.Ask.Agent = "ci-43" },
		"the agent's own name":    func(r *link.Request) { r.Ask.AgentName = "writer" },
		"the directory":           func(r *link.Request) { r.Ask.Cwd = "/srv" },
		"the home":                func(r *link.Request) { r.Ask.Home = "/root" },
		"the platform":            func(r *link.Request) { r.Ask.Platform = "darwin" },
		"the project":             func(r *link.Request) { r.Ask.Project.ID = "q" },
		"the project's root":      func(r *link.Request) { r.Ask.Project.Root = "/srv" },
		"the project's policy":    func(r *link.Request) { r.Ask.Project.Digest = "sha256:2" },
		"what a path resolves to": func(r *link.Request) { r.Ask.Paths = []protocol.Path{{Raw: "x", Resolved: "/srv/x"}} },
		"the person's words":      func(r *link.Request) { r.Ask.Intent = "tidy up" },
		"the node it came from":   func(r *link.Request) { r.Ask.Hops = []string{"child"} },
		"the servers it has":      func(r *link.Request) { r.Ask.MCPServers = []string{"exa"} },
		"a person alone":          func(r *link.Request) { r.Ask.HumanOnly = true },
		"the open surface":        func(r *link.Request) { r.Asks[0].Surface = "external_directory" },
		"the open value":          func(r *link.Request) { r.Asks[0].Value = "rm" },
		"the rule":                func(r *link.Request) { r.Asks[0].MatchedPattern = "rm *" },
		"another open entry":      func(r *link.Request) { r.Asks = append(r.Asks, r.Asks[0]) },
		"a unit":                  func(r *link.Request) { r.Units[0].Decision = protocol.ActionAllow },
		"the policy":              func(r *link.Request) { r.PolicyRevision = 13 },
	}
	first := KeyOf(request(), "kind", "model")
	if first == (Key{}) {
		t.Fatal("the first has no key")
	}
	for name, change := range same {
		r := request()
		change(&r)
		if KeyOf(r, "kind", "model") != first {
			t.Errorf("%s makes another key", name)
		}
	}
	seen := map[Key]string{first: "nothing"}
	for name, change := range other {
		r := request()
		change(&r)
		k := KeyOf(r, "kind", "model")
		if twin, twice := seen[k]; twice {
			t.Errorf("%s makes the key of %s", name, twin)
		}
		seen[k] = name
	}
	for _, config := range [][]string{{"kind", "other"}, {"kindmodel"}, {"kind", "model", ""}, {"model", "kind"}, nil} {
		if k := KeyOf(request(), config...); seen[k] != "" {
			t.Errorf("settings %q make the key of %s", config, seen[k])
		}
	}
}

func TestWhatIsNotRemembered(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*link.Request){
		"a policy of no known revision": func(r *link.Request) { r.PolicyRevision = 0 },
		"an input that is no JSON": func(r *link.Request) {
			r.Ask.Tool.Name, r.Asks, r.Ask.Tool.Input = "read", nil, jsontext.Value(`{"a":`)
		},
		"no input": func(r *link.Request) { r.Ask.Tool.Name, r.Asks, r.Ask.Tool.Input = "read", nil, nil },
		"a tool that is not known": func(r *link.Request) {
			r.Ask.Tool.Name, r.Asks, r.Ask.Tool.Input = "mcp__x__y", nil, jsontext.Value(`{}`)
		},
		"a shell without a command": func(r *link.Request) { r.Ask.Tool.Input = jsontext.Value(`{"run":"ls"}`) },
		"a list as the command":     func(r *link.Request) { r.Ask.Tool.Input = jsontext.Value(`{"command":["ls"]}`) },
		"a file tool that has a script": func(r *link.Request) {
			r.Ask.Tool, r.Asks = protocol.Tool{Name: "read", Input: jsontext.Value(`{"path":"x","command":"./x"}`)}, nil
		},
	} {
		r := request()
		change(&r)
		if k := KeyOf(r); k != (Key{}) {
			t.Errorf("%s has a key", name)
		}
	}
}

// TestScripts: what a command means must stand in its words alone.
func TestScripts(t *testing.T) {
	t.Parallel()
	for _, free := range []string{"rm -rf /srv", "rm -rf $HOME", "ls -l | wc -l", "cat a > b", "cd /srv && rm -rf x", "echo a; rm b || true", "chmod 777 \"$X\"", "kill -9 1 & pkill x",
		"dd if=/dev/zero of=/dev/sda", "rm x # ./comment", "for i in a; do rm $i; done"} {
		if !plainCommand(free) {
			t.Errorf("%q runs no script", free)
		}
	}
	for _, runs := range []string{"./x", "/srv/x", "x", "sh file", "bash -c 'rm x'", "python file", "node x", "make", "npm run build", "git push", ". ./x", "source x", "eval rm x",
		"rm $(./x)", "rm `./x`", "echo <(./x)", "PATH=. rm x", "PATH=.; rm x", "export PATH=.; rm x", "alias rm=./x; rm y", "rm() { ./x; }; rm y", "$X y", "\"$RM\" y", "r* y",
		"find . -exec ./x {} +", "xargs rm", "sudo rm x", "env rm x", "timeout 5 ./x", "tar --to-command=./x -xf y", "sort --compress-program=./x y", "printf -v PATH .", "test -v 'a[$(./x)]'",
		"[[ a -eq 'b[$(./x)]' ]]", "(( a[$(./x)] ))", "if rm x; then ./y; fi", "rm x; ./y", "rm x | sh", "sh <<E\nrm x\nE", "cat <<E\n$(./x)\nE", "trap ./x EXIT", "exec ./x",
		"coproc ./x", "rm x\\\n; ./y", "rm a # b\\\nrm c", "rm() { cat x; }", "for x in 'a[$(./x)]'; do rm ${!x}; done", "for x in '$(./x)'; do rm ${x@P}; done", "for x in 'a[$(./x)]'; do rm $((x)); done", "for x in 'a[$(./x)]'; do rm $[x]; done", "", " ", "# only a comment", "rm 'a", "rm x\x00", "!!", "fc -s", "enable -f ./x rm", "hash -p ./x rm; rm y", "command ./x", "builtin source x"} {
		if plainCommand(runs) {
			t.Errorf("%q may run a script", runs)
		}
	}
}

func TestAgeAndRoom(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	c := New(2, time.Minute)
	c.now = func() time.Time { return now }
	key := func(n int) Key { return Key{byte(n)} }
	c.Deny(key(1), "one")
	now = now.Add(59 * time.Second)
	if r, ok := c.Lookup(key(1)); !ok || r != "one" {
		t.Fatalf("within its time: %q, %t", r, ok)
	}
	now = now.Add(time.Second)
	if r, ok := c.Lookup(key(1)); ok || r != "" || c.Len() != 0 {
		t.Fatalf("past its time: %q, %t; using it must not prolong it", r, ok)
	}
	for n := range 3 {
		c.Deny(key(n+1), fmt.Sprint(n+1))
	}
	if _, ok := c.Lookup(key(1)); ok || c.Len() != 2 {
		t.Errorf("the oldest is still there of %d", c.Len())
	}
	for _, n := range []int{2, 3} {
		if r, ok := c.Lookup(key(n)); !ok || r != fmt.Sprint(n) {
			t.Errorf("%d: %q, %t", n, r, ok)
		}
	}
}

func TestWhatIsNoDenial(t *testing.T) {
	t.Parallel()
	c := New(8, time.Minute)
	c.Deny(Key{}, "a call that must not be remembered")
	c.Deny(Key{1}, "")
	c.Deny(Key{2}, strings.Repeat("a", protocol.MaxReason+1))
	if _, ok := c.Lookup(Key{}); ok || c.Len() != 0 {
		t.Errorf("%d denials are held", c.Len())
	}
	for name, none := range map[string]*Cache{"nil": nil, "no room": New(0, time.Hour), "less than none": New(-1, time.Hour), "no time": New(8, 0)} {
		none.Deny(Key{1}, "x")
		if _, ok := none.Lookup(Key{1}); ok || none.Len() != 0 {
			t.Errorf("%s: it is held", name)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	c := New(16, time.Minute)
	var group sync.WaitGroup
	for w := range 8 {
		group.Go(func() {
			for n := range 500 {
				k := Key{byte(n % 32), 1}
				c.Deny(k, fmt.Sprint(n%32))
				if r, ok := c.Lookup(k); ok && r != fmt.Sprint(n%32) {
					t.Errorf("worker %d: %v says %q", w, k, r)
				}
			}
		})
	}
	group.Wait()
	if c.Len() > 16 {
		t.Errorf("%d are held", c.Len())
	}
}
