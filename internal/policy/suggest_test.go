package policy

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSuggestions(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, permission(`{"*":"ask"}`))
	for text, want := range map[string][]string{
		// As wide as what the words in front name.
		"git push origin main": {"git push *"}, "git status": {"git status*"}, "npm run build -- -w": {"npm run build *"},
		"docker ps -a": {"docker ps *"}, "kubectl get pods": {"kubectl get *"}, "gh pr view 7": {"gh pr view *"}, "ls -l": {"ls *"},
		"aws s3 ls b": {"aws s3 ls *"}, "echo '*' x": {"echo *"}, "pwd": {"pwd"}, "Git Push x": {"Git Push *"},
		// No wider than the call itself.
		"rm -rf x": {"rm -rf x"}, "kubectl delete pod x": {"kubectl delete pod x"}, "terraform destroy -y": {"terraform destroy -y"},
		"git -C sub push": {"git -C sub push"}, "curl https://example.com": {"curl https://example.com"}, "/bin/rm x": {"/bin/rm x"},
		"chmod 600 a": {"chmod 600 a"}, "gh api x": {"gh api x"},
		// Nothing: a grant would not let it pass, or the call is no pattern.
		"sudo ls": nil, "bash -c 'ls'": nil, "'": nil, "": nil, "rm 'a*'": nil, "echo '*'": nil,
	} {
		if got := s.Rule(bash(text)).Suggest; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	human := mustCompile(t, permission(`{"*":"allow","bash":{"*":{"action":"ask","humanOnly":true}}}`))
	if got := human.Rule(bash("ls -l")).Suggest; got != nil {
		t.Errorf("for what only a person answers: %q", got)
	}
}

func TestSuggestedFolders(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, permission(`{"*":"allow","external_directory":"ask","path":"ask","read":"ask"}`))
	for path, want := range map[string]string{
		"/srv/data/a/b": "/srv/data/a/*", "/home/dev/other/a/b": "/home/dev/other/a/*", "/usr/share/doc/a": "/usr/share/doc/*",
		"/etc/passwd": "/etc/passwd", "/etc/nginx/a": "/etc/nginx/a", "/home/dev/a": "/home/dev/a", "/home/x/a": "/home/x/a", "/a": "/a", "/etc": "/etc",
		"/srv/data/.env": "/srv/data/.env", "/srv/x/id_rsa": "/srv/x/id_rsa", "/home/dev/.config/a": "/home/dev/.config/a",
	} {
		if got := s.Rule(on("read", m{"path": path})).Suggest; !reflect.DeepEqual(got, []string{want}) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	inside := mustCompile(t, permission(`{"*":"allow","read":"ask"}`))
	for path, want := range map[string][]string{
		"src/a/b": {"src/a/*"}, "a": {"./*"}, "/repo/src/b": {"/repo/src/*"}, ".env": {".env"}, "src/../a": {"src/../a"}, "src/*": nil,
	} {
		if got := inside.Rule(on("read", m{"path": path})).Suggest; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// FuzzSuggest: what is offered for a grant is a grant, covers what it is offered
// for, and lets that entry pass.
func FuzzSuggest(f *testing.F) {
	for _, text := range []string{"git push", "rm -rf x", "cat /etc/passwd", "echo '*'", "a && b", "sudo ls", "cd x; ls", "npm run 'a b'", "/srv/a/b", "\x00"} {
		f.Add(text, true)
		f.Add(text, false)
	}
	s := mustCompile(f, permission(`{"*":"ask","path":"ask"}`))
	f.Fuzz(func(t *testing.T, text string, shell bool) {
		if !utf8.ValidString(text) {
			return // no input of a tool
		}
		call := bash(text)
		if !shell {
			call = on("read", m{"path": text})
		}
		r := s.Rule(call)
		if len(r.Suggest) == 0 {
			return
		}
		first := r.Open()[0]
		g, err := NewGrant("g", first.Surface, r.Suggest)
		if err != nil {
			t.Fatalf("%q is offered %q: %v", text, r.Suggest, err)
		}
		if first.Floor || first.HumanOnly {
			t.Fatalf("%q is offered for %+v", r.Suggest, first)
		}
		if !g.Covers(call, first.Surface, first.Value)[0] {
			t.Fatalf("%q does not cover %q", r.Suggest, first.Value)
		}
		if with := s.RuleWith(call, []Grant{g}); len(with.Cleared) == 0 || with.Cleared[0].Surface != first.Surface {
			t.Fatalf("%q clears nothing of %q: %+v", r.Suggest, text, with.Open())
		}
	})
}

// What is asked about with a slash behind it is a folder: what is offered is all
// that is in it, where that is no more than one folder of its own kind.
func TestSuggestForAFolder(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, permission(`{"*":"ask"}`))
	for value, want := range map[string]string{
		"/a/b/": "/a/b/*", "src/": "src/*", "/": "/", "/etc/": "/etc/", "/usr/": "/usr/", "~/": "~/", "/home/dev/": "/home/dev/", "/home/": "/home/",
		"/a/.ssh/": "/a/.ssh/", "/a/../": "/a/../", "/a/*/": "",
	} {
		got := strings.Join(s.Suggest(Query{Surface: "path", Value: value, Home: "/home/dev"}), " ")
		if got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
	for _, nothing := range []string{"", "# only"} {
		got := s.Suggest(Query{Surface: "bash", Value: nothing})
		if len(got) != 1 || got[0] != "" {
			t.Errorf("%q: %q, want the empty text", nothing, got)
		}
		if _, err := NewGrant("", "bash", got); err == nil {
			t.Errorf("%q: what is offered for no command is a grant", nothing)
		}
	}
}
