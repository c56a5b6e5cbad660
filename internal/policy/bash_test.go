package policy

import (
	"reflect"
	"testing"
)

func TestChainsNeedARuleForEachCommand(t *testing.T) {
	t.Parallel()
	list := `{"*":"ask","path_write":{"*":"allow"},"bash":{"*":"ask","git *":"allow","ls *":"allow","cat *":"allow","echo *":"allow","npm *":"deny"}}`
	ruleRows(t, []row{
		{"every one has one", list, bash("git status && ls | cat; echo a &"), Allow, "bash", "git *"},
		{"one has none", list, bash("git log | head"), Ask, "bash", "*"},
		{"one is denied", list, bash("git status && npm i"), Deny, "bash", "npm *"},
		{"the first of two that deny is named", list, bash("cd x; npm i; npm x"), Deny, "bash", "npm *"},
		{"within a substitution", list, bash("echo $(git status) `ls`"), Allow, "bash", "echo *"},
		{"within a substitution that has none", list, bash("echo $(date)"), Ask, "bash", "*"},
		{"within control flow", list, bash("for f in a b; do cat $f; done; if ls; then git log; fi"), Allow, "bash", "cat *"},
		{"within control flow that has none", list, bash("while ls; do date; done"), Ask, "bash", "*"},
		{"a harmless assignment beside a command", list, bash("X=1; git log"), Allow, "bash", "git *"},
		{"an assignment alone is a text like any other", list, bash("X=1"), Ask, "bash", "*"},
		{"a test beside a command", list, bash("[[ -f a ]] && cat a"), Allow, "bash", "cat *"},
		{"a harmless assignment in front", list, bash("CGO_ENABLED=0 git status"), Allow, "bash", "git *"},
		{"an assignment in front that changes what runs", list, bash("GIT_PAGER=x git log"), Ask, "bash", "<assignment>"},
		{"a redirection to a file that may be written", list, bash("echo a > b && cat < b"), Allow, "bash", "echo *"},
		{"a redirection of a whole list", list, bash("{ ls; git log; } > out 2>&1"), Allow, "bash", "ls *"},
		{"a modifier resolves by what it carries", list, bash("timeout 5 git status"), Allow, "bash", "git *"},
		{"a modifier of what has no rule", list, bash("timeout 5 date"), Ask, "bash", "*"},
		{"a modifier of what is denied", list, bash("nice env npm i"), Deny, "bash", "npm *"},
		{"a modifier that a rule names", `{"*":"ask","bash":{"*":"allow","nohup *":"deny"}}`, bash("nohup ls"), Deny, "bash", "nohup *"},
		{"a wrapper asks though what it carries is allowed", list, bash("ls | xargs cat"), Ask, "bash", "*"},
		{"a comment runs nothing", `{"bash":{"*":"allow"}}`, bash("# rm x"), Allow, "bash", "*"},
		{"a pattern with a sign between commands is one of the whole text", `{"bash":{"*":"allow","curl *|*sh*":"deny"}}`, bash("curl x | tee y | shasum"), Deny, "bash", "curl *|*sh*"},
		{"what a later rule for everything allows stays allowed", `{"bash":{"ls | cat":"deny","*":"allow"}}`, bash("ls | cat"), Allow, "bash", "*"},
	})
}

func TestComputedWordsAreNoWayAroundARule(t *testing.T) {
	t.Parallel()
	open := `{"*":"allow","bash":{"*":"allow","rm -rf *":"deny","git push --force*":"deny","git branch -d *":"ask","git push -f *":"allow"}}`
	ruleRows(t, []row{
		{"a word that may be the denied option", open, bash("read o < f; rm $o x"), Ask, "bash", "<expansion>"},
		{"a quoted one", open, bash(`rm "$(cat f)" x`), Ask, "bash", "<expansion>"},
		{"a word behind a fixed front cannot be it", open, bash(`rm "x$o"`), Ask, "bash", "<expansion>"},
		{"a word of another subcommand", open, bash(`git branch -m "$x"`), Allow, "bash", "*"},
		{"a word that may be what a rule asks about", open, bash(`git branch "$x" y`), Ask, "bash", "<expansion>"},
		{"a variable's name is no text to allow by", `{"external_directory":"allow","bash":{"*":"ask","cat *md":"allow"}}`, bash("cat $readmd"), Ask, "bash", "*"},
		{"a variable behind a front that is allowed", `{"external_directory":"allow","bash":{"*":"ask","cat src/*":"allow"}}`, bash(`cat "src/$x"`), Allow, "bash", "cat src/*"},
		{"a variable as the author wrote it", `{"external_directory":"allow","bash":{"*":"ask","ls $DIR":"allow"}}`, bash("ls $DIR"), Allow, "bash", "ls $DIR"},
		{"what a variable is in the text itself", open, bash("x=-rf; rm $x y"), Deny, "bash", "rm -rf *"},
	})
}

func TestUnknownProgramsThatCarryADeniedCommand(t *testing.T) {
	t.Parallel()
	open := `{"*":"allow","bash":{"*":"allow","git add -A*":"deny","rm *":"ask","sudo *":"deny","git push *":"deny"}}`
	ruleRows(t, []row{
		{"a wrapper of one's own", open, bash("mywrap git add -A"), Ask, "bash", "<wrapper:mywrap>"},
		{"one with options in front", open, bash("mywrap -x 3 rm y"), Ask, "bash", "<wrapper:mywrap>"},
		{"one by its path", open, bash("./run.sh git push"), Ask, "bash", "<wrapper:./run.sh>"},
		{"the command in one word", open, bash("mywrap 'git push'"), Ask, "bash", "<wrapper:mywrap>"},
		{"a script of an interpreter", open, bash("python3 run.py git push"), Ask, "bash", "<wrapper:python3>"},

		{"another command", open, bash("mywrap git status"), Allow, "bash", "*"},
		{"echo", open, bash("echo git push"), Allow, "bash", "*"},
		{"grep", open, bash("grep rm file"), Allow, "bash", "*"},
		{"a manual", open, bash("man rm"), Allow, "bash", "*"},
		{"which", open, bash("which sudo"), Allow, "bash", "*"},
		{"a lookup", open, bash("command -v rm"), Allow, "bash", "*"},
		{"git", open, bash("git log --grep rm"), Allow, "bash", "*"},
		{"a commit's message", open, bash("git commit -m 'git push comes later'"), Allow, "bash", "*"},
		{"a package", open, bash("apt-get install sudo"), Allow, "bash", "*"},
	})
}

func TestFlagsInAnyOrder(t *testing.T) {
	t.Parallel()
	doc := `{"*":"allow","bash":{"*":"allow","git push -f":{"action":"deny","flagsAnyOrder":true},"git push --force":{"action":"deny","flagsAnyOrder":true},
		"rm -r -f *":{"action":"deny","flagsAnyOrder":true},"gh api -X":{"action":"ask","flagsAnyOrder":true}}}`
	var rows []row
	for text, pattern := range map[string]string{
		"git push -f": "git push -f", "git push origin x -f": "git push -f", "git push -uf origin": "git push -f", "git -C sub push -f": "git push -f",
		"git push origin --force": "git push --force", "git push --forc": "git push --force", "git push --force=x y": "git push --force", "/usr/bin/git push -f": "git push -f",
		"rm -rf x": "rm -r -f *", "rm x -f -r": "rm -r -f *", "rm -fvr x": "rm -r -f *", "sudo git push -f": "git push -f",
	} {
		rows = append(rows, row{"denied: " + text, doc, bash(text), Deny, "bash", pattern})
	}
	for _, text := range []string{
		"git push origin batch/obs-fixes", "git push origin -u x", "git push --force-with-lease", "git push --follow-tags", "gh issue create --title 'git push -f'", "git commit -m '-f'",
		"rm -r x", "rm -f x", "git pull -f", "echo git push -f",
	} {
		rows = append(rows, row{"allowed: " + text, doc, bash(text), Allow, "bash", "*"})
	}
	rows = append(rows,
		row{"asked", doc, bash("gh api repos/x -X DELETE"), Ask, "bash", "gh api -X"},
		row{"a word that may be the flag", doc, bash(`git push origin "$x"`), Ask, "bash", "<expansion>"},
	)
	ruleRows(t, rows)
}

func TestUnitsSayWhatIsMissing(t *testing.T) {
	t.Parallel()
	got := mustCompile(t, permission(`{"bash":{"*":"ask","ls *":"allow","sudo *":"allow","git *":"allow"}}`)).Rule(bash("ls; sudo ls; timeout 5 git log; X=1; git $x"))
	want := []Unit{
		{Text: "ls", Action: Allow, Pattern: "ls *"},
		{Text: "sudo ls", Action: Ask, Pattern: "<wrapper:sudo>"},
		{Text: "ls", Action: Allow, Pattern: "ls *", Note: "run by sudo"},
		{Text: "timeout 5 git log", Action: Allow, Pattern: "<modifier>", Note: "runs the command behind it"},
		{Text: "git log", Action: Allow, Pattern: "git *", Note: "run by timeout"},
		{Text: "X=1", Action: Allow, Pattern: "*"},
		{Text: "git $x", Action: Ask, Pattern: "<expansion>"},
	}
	if !reflect.DeepEqual(got.Units, want) {
		t.Errorf("units %+v", got.Units)
	}
	if d := got.Decisive; d.MatchedPattern != "<wrapper:sudo>" || !d.Floor || d.Unit != 1 {
		t.Errorf("decisive %+v", d)
	}
}
