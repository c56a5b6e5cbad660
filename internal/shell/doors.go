package shell

import (
	"slices"
	"strings"
)

// doorway lists the options by which an ordinary program runs another one, or
// reads, deletes and writes what its rule and its words do not name.
type doorway struct {
	// short are the doors among the short options, valued those others that
	// take a value: what follows one of them in its word is no option.
	short, valued string
	// long are the doors among the long options, without dashes. Every
	// abbreviation counts, since most programs take them, but for those in
	// harmless, which are options of their own.
	long, harmless []string
	// words are doors that are no options: the fronts of whole words.
	words []string
	// texts may stand nowhere in a word, in lower case.
	texts []string
	// single: a word behind one dash is a long option, and none is abbreviated.
	single bool
}

// open returns the first door that args use, "" if they use none. What stands
// behind "--" counts too: it may be the value of an option.
func (d doorway) open(args []string) string {
	for _, a := range args {
		for _, w := range d.words {
			if strings.HasPrefix(a, w) {
				return w
			}
		}
		for _, t := range d.texts {
			if strings.Contains(strings.ToLower(a), t) {
				return t
			}
		}
		if door := d.option(a); door != "" {
			return door
		}
	}
	return ""
}

// option returns the door that a word opens as an option.
func (d doorway) option(a string) string {
	if len(a) < 2 || a[0] != '-' {
		return ""
	}
	if d.single || strings.HasPrefix(a, "--") {
		return d.longOption(a)
	}
	for i := 1; i < len(a); i++ {
		if strings.IndexByte(d.short, a[i]) >= 0 {
			return "-" + a[i:i+1]
		}
		if strings.IndexByte(d.valued, a[i]) >= 0 {
			return ""
		}
	}
	return ""
}

func (d doorway) longOption(a string) string {
	dash := "--"
	if d.single {
		dash = "-"
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(a[1:], "-"), "=")
	if name == "" || slices.Contains(d.harmless, name) {
		return ""
	}
	for _, l := range d.long {
		if name == l || !d.single && strings.HasPrefix(l, name) {
			return dash + l
		}
	}
	return ""
}

// doors by program.
var doors = map[string]doorway{
	"find": {single: true, long: []string{"exec", "execdir", "ok", "okdir", "delete", "fprint", "fprint0", "fprintf", "fls", "files0-from"}},
	"fd":   {short: "xX", valued: "deEtScjo", long: []string{"exec", "exec-batch"}},
	"go": {single: true, long: []string{"exec", "toolexec", "vettool"},
		texts: []string{"extld", "extar"}},
	"tar": {short: "IFT", valued: "fCXbLKNgHV", harmless: []string{"checkpoint", "file"}, long: []string{"checkpoint-action", "to-command", "use-compress-program",
		"info-script", "new-volume-script", "rsh-command", "rmt-command", "index-file", "volno-file", "files-from"}},
	"rg":      {long: []string{"pre", "hostname-bin"}},
	"ag":      {long: []string{"pager"}},
	"ack":     {long: []string{"pager", "ackrc"}},
	"bat":     {long: []string{"pager"}},
	"sort":    {short: "o", valued: "kStT", long: []string{"output", "compress-program", "files0-from"}},
	"shuf":    {short: "o", valued: "in", long: []string{"output"}},
	"wc":      {long: []string{"files0-from"}},
	"du":      {valued: "BdtX", long: []string{"files0-from"}},
	"split":   {valued: "abClnt", long: []string{"filter"}},
	"install": {valued: "gmotS", long: []string{"strip-program"}},
	"rsync": {short: "eM", valued: "fTB", long: []string{"rsh", "rsync-path", "remote-option", "daemon", "config", "log-file", "write-batch",
		"only-write-batch", "files-from"}},
	"scp":  {short: "SoDF", valued: "ciJlPX"},
	"sftp": {short: "SoDFbs", valued: "BciJlPRX"},
	"make": {short: "E", valued: "CfIjloW", long: []string{"eval"}, texts: []string{"$(", "${"}},
	"man":  {short: "PHCX", valued: "mMseLErRSp", long: []string{"pager", "html", "config-file", "gxditview"}},
	"less": {short: "oOk", valued: "bhjPptxyzDT", long: []string{"log-file", "LOG-FILE", "lesskey-file", "lesskey-src", "lesskey-content"}, words: []string{"+!", "++", "+s", "+|", "+v", "+#"}},
	"zip":  {short: "T", valued: "nbtix", long: []string{"unzip-command"}},
	"curl": {short: "K", valued: "AbcCdDeEFhHmoPQrTtuUwxXyYz", long: []string{"config"}},
	"wget": {short: "e", valued: "aoitTQwOPAUDRXIlBn", long: []string{"use-askpass", "execute", "config"}},
	"tcpdump": {short: "z", valued: "BcCEFGijmMQrsTVwWyZ",
		long: []string{"postrotate-command"}},
	"nmap":    {long: []string{"script"}},
	"fzf":     {long: []string{"preview", "bind"}},
	"cargo":   {long: []string{"config"}, texts: []string{"linker=", "link-arg", "dlltool=", "codegen-backend"}},
	"rustc":   {words: []string{"@"}, texts: []string{"linker=", "link-arg", "dlltool=", "codegen-backend"}},
	"apt-get": {short: "oc", valued: "t", long: []string{"option", "config-file"}},
	"dpkg":    {long: []string{"pre-invoke", "post-invoke"}},
	"npm":     {long: []string{"script-shell", "node-options", "shell", "editor", "viewer", "browser", "git", "init-module", "use-yarnrc"}},
	"psql":    {short: "oL", valued: "cdfhpFPRTUv", long: []string{"output", "log-file"}, texts: []string{`\`, "program"}},
	"mysql":   {long: []string{"pager", "tee", "init-command"}, texts: []string{`\`, "system", "source", "pager", "tee", "outfile", "dumpfile"}},
	"java":    {words: []string{"-XX:OnError", "-XX:OnOutOfMemoryError", "-XX:Flags", "-XX:VMOptionsFile", "-agent", "-javaagent", "@"}},
	"pylint":  {long: []string{"init-hook", "load-plugins"}},
	"cmake":   {words: []string{"-E"}},
	"yq":      {short: "s", valued: "Iopf", long: []string{"split-exp", "split-exp-file"}, texts: []string{"load"}},
	"jq":      {texts: []string{`import "`, `import"`, `include "`, `include"`}},
	"jobs":    {short: "x"},
	"sdiff":   {long: []string{"diff-program"}},
	"diff3":   {long: []string{"diff-program"}},
	"cloc":    {long: []string{"vcs", "extract-with", "config"}},
	"mapfile": {short: "C", valued: "dnOsuc"}, "readarray": {short: "C", valued: "dnOsuc"},
	"hash": {short: "p"}, "enable": {short: "f"}, "printf": {short: "v"}, "alias": {words: []string{"-", "="}, texts: []string{"="}},
}

func init() {
	for name, same := range map[string]string{
		"fdfind": "fd", "bsdtar": "tar", "gmake": "make", "more": "less", "mariadb": "mysql", "apt": "apt-get", "pnpm": "npm", "yarn": "npm",
		"batcat": "bat",
	} {
		doors[name] = doors[same]
	}
	for name, d := range buildDoors() {
		doors[name] = d
	}
}

// doorsOf is what is known of a program: also with its version behind its name,
// as gcc-13, and with the system in front for which it builds, as
// x86_64-linux-gnu-gcc.
func doorsOf(name string) doorway {
	if d, known := doors[name]; known {
		return d
	}
	name = strings.TrimRight(name, "0123456789.-")
	if d, known := doors[name]; known {
		return d
	}
	if at := strings.LastIndexByte(name, '-'); at > 0 && crossed[name[at+1:]] {
		return doors[name[at+1:]]
	}
	return doorway{}
}

// doorOf is the option that keeps a command from being simple, "" if none does.
func doorOf(name string, args []string) string {
	d := doorsOf(name)
	switch name {
	case "tar", "bsdtar":
		if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
			// The old style: a first word of letters without a dash, whose
			// values all follow in words of their own.
			if door := (doorway{short: d.short}).option("-" + args[0]); door != "" {
				return door
			}
		}
		if slices.ContainsFunc(args, remoteArchive) {
			return "-f host:file" // runs rsh
		}
	case "make", "gmake":
		if door := makeDoor(args); door != "" {
			return door
		}
	case "printf":
		args = args[:min(len(args), 1)] // only in front of the format
	case "go":
		if len(args) > 1 && args[0] == "env" && slices.ContainsFunc(args[1:], func(a string) bool { return a == "-w" || a == "--w" }) {
			return "env -w" // sets the programs that later calls run
		}
	}
	if door := buildDoor(name, args); door != "" {
		return door
	}
	if door := settingDoor(name, args); door != "" {
		return door
	}
	return d.open(args)
}
