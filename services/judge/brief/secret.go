package brief

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// shape is one way in which a secret looks. group is the part of the match that
// is the secret; the rest stays, so that a judge still sees what the text does.
// needs are words in small letters one of which every match holds: most texts
// hold none of them, and looking for a word costs next to nothing. What skip
// matches, if there is one, is no secret in this place.
type shape struct {
	needs []string
	re    *regexp.Regexp
	group int
	skip  *regexp.Regexp
}

func words(s string) []string { return strings.Fields(s) }

// nameWords are what one of stands in every secretName.
var nameWords = words("secret token pass key cred pwd")

// secretName is the name of a setting that holds a secret, with the words that
// are often put in front of it and behind it. One that only says where a secret
// is (TOKEN_FILE, --password-stdin) is none.
const secretName = `(?:[a-z0-9_.-]*[_.-])?(?:auth|access|refresh|client|session|bot|user|db|root|admin|master|app)?` +
	`(?:secret|token|passwd|password|passphrase|pass|api[_-]?key|access[_-]?key(?:[_-]?id)?|secret[_-]?key|secret[_-]?access[_-]?key|private[_-]?key|` +
	`auth[_-]?key|account[_-]?key|signing[_-]?key|encryption[_-]?key|credentials?|[a-z0-9]+_pwd|pgpassword)` +
	`(?:[_-](?:key|value|base|base64|b64|prod|production|dev|staging|test|main|old|new|v?[0-9]+))?`

// masked is what was masked before.
const masked = `\[masked [0-9]+\]`

// value is what stands behind a secret's name: a word as a shell reads it, which
// may be put together of several quoted and bare parts, up to the next sign that
// ends one. Masked in part, its end would be shown.
const value = `((?:` + masked + `|"(?:[^"\\\n]|\\.)+"|'[^'\n]+'|\\.|[^\s"'\\` + "`" + `;|&<>(){},]+)+)`

// shapes are tried on the text as it was given. All are linear in the text.
var shapes = []shape{
	// Well-known forms of keys.
	{words("sk- k_live k_test"), regexp.MustCompile(`(?i)(?:^|[^A-Za-z0-9])(sk-[a-z0-9_-]{16,}|[sr]k_(?:live|test)_[a-z0-9]{10,})`), 1, nil},
	{words("gh _pat_ gl"), regexp.MustCompile(`(?i)(?:^|[^A-Za-z0-9])((?:gh[pousr]_[a-z0-9]{16,}|github_pat_[a-z0-9_]{16,}|gl(?:pat|dt|rt|cbt|ptt|ft|soat)-[a-z0-9_-]{16,}))`), 1, nil},
	{words("xox xapp-"), regexp.MustCompile(`(?i)(?:^|[^A-Za-z0-9])(xox[a-z]-[a-z0-9-]{10,}|xapp-[a-z0-9-]{10,})`), 1, nil},
	{words("akia asia aida aroa abia acca"), regexp.MustCompile(`(?i)(?:^|[^A-Za-z0-9])((?:AKIA|ASIA|AIDA|AROA|ABIA|ACCA)[0-9A-Z]{12,})`), 1, nil},
	{words("aiza ya29. gocspx-"), regexp.MustCompile(`(?:^|[^A-Za-z0-9])(AIza[0-9A-Za-z_-]{30,}|ya29\.[0-9A-Za-z_-]{20,}|GOCSPX-[0-9A-Za-z_-]{20,})`), 1, nil},
	{words("_ - dapi"), regexp.MustCompile(`(?i)(?:^|[^A-Za-z0-9])((?:npm_|hf_|gsk_|xai-|dapi|dop_v1_|doo_v1_|shp(?:at|ca|pa|ss)_|lin_api_|ntn_|pypi-|figd_|sntrys_|glsa_|PMAK-|rubygems_|tfp_|pul-|dckr_pat_|whsec_|sbp_|r8_)[a-z0-9_.-]{20,})`), 1, nil},
	{words("hvs. hvb. hvr. sg. dp."), regexp.MustCompile(`(?:^|[^A-Za-z0-9])(hv[sbr]\.[0-9A-Za-z_-]{20,}|SG\.[0-9A-Za-z_-]{16,}\.[0-9A-Za-z_-]{16,}|dp\.[a-z]{2,5}\.[0-9A-Za-z]{20,})`), 1, nil},
	{words("age-secret-key- sa sc sn so su sx :aa"), regexp.MustCompile(`(?:^|[^A-Za-z0-9])(AGE-SECRET-KEY-1[0-9A-Z]{20,}|S[ACNOUX][A-Z2-7]{56}\b|[0-9]{8,10}:AA[0-9A-Za-z_-]{30,})`), 1, nil},
	{words("hooks.slack.com discord"), regexp.MustCompile(`(?i)https://(?:hooks\.slack\.com/(?:services|workflows)|(?:ptb\.|canary\.)?discord(?:app)?\.com/api/webhooks)/([a-z0-9/_-]+)`), 1, nil},
	// What is stored of a password.
	{words("$2a$ $2b$ $2y$ $5$ $6$ $y$ $argon2"), regexp.MustCompile(`\$(?:2[aby]|5|6|y|argon2(?:id|i|d))\$[./A-Za-z0-9$=,+-]{16,}`), 0, nil},
	// A JSON Web Token, also one without a signature.
	{words("eyj"), regexp.MustCompile(`(?:^|[^A-Za-z0-9])(eyJ[0-9A-Za-z_-]{8,}\.(?:eyJ[0-9A-Za-z_-]{4,})(?:\.[0-9A-Za-z_-]*)?)`), 1, nil},
	// A private key, to its end or to the end of the text.
	{[]string{"private key"}, regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|$)`), 0, nil},
	{words("nkey user"), regexp.MustCompile(`-----BEGIN [A-Z ]*(?:NKEY SEED|USER JWT)-----(?s:.*?)(?:------?END [A-Z ]*------?|$)`), 0, nil},
	// The password in an address, or a token in the place of the user.
	{words("@"), regexp.MustCompile(`://[^/\s:@"']*:([^\s"']+)@`), 1, regexp.MustCompile(`^[0-9]{1,5}(?:/|$)`)}, // a port
	{words("@"), regexp.MustCompile(`://([^/\s:@"']{20,})@`), 1, nil},
	// Headers. What follows the word for the scheme is the secret, up to the
	// quote or the line's end.
	{words("authorization"), regexp.MustCompile(`(?i)\b(?:proxy-)?authorization["']?\s*[:=]\s*["']?(?:(?:bearer|basic|token|digest|negotiate|apikey|aws4-hmac-sha256)\s+)?([^"'\n\r]+)`), 1, nil},
	{words("x- private-token job-token deploy-token api-key apikey cookie"), regexp.MustCompile(`(?i)\b(?:x-[a-z-]*(?:key|token|secret|auth)[a-z-]*|private-token|job-token|deploy-token|api-key|apikey|set-cookie|cookie)["']?\s*:\s*["']?([^"'\n\r]+)`), 1, nil},
	{words("bearer"), regexp.MustCompile(`(?i)\bbearer\s+([a-z0-9_.~+/=-]{8,})`), 1, nil},
	{words("basic"), regexp.MustCompile(`(?i)\bbasic\s+([a-z0-9+/_-]{12,}={0,2})`), 1, nil},
	// Settings and options by their names: NAME=x, "name": "x", --name x.
	{nameWords, regexp.MustCompile(`(?i)(?:^|[^a-z0-9])` + secretName + `["']?(?:[ \t]*:=?[ \t]+|[ \t]+=[ \t]+|=)` + value), 1, nil},
	{nameWords, regexp.MustCompile(`(?i)(?:^|[^a-z0-9])` + secretName + `["']?[ \t]*:=?` + value), 1, regexp.MustCompile(`^[-+?]`)}, // ${NAME:-…}
	{nameWords, regexp.MustCompile(`(?i)(?:^|\s)--?` + secretName + `(?:=|\s+)` + value), 1, regexp.MustCompile(`^-`)},              // the next option
	// What stands in for a setting that is not there.
	{nameWords, regexp.MustCompile(`(?i)\$\{` + secretName + `:?[-=]` + value), 1, nil},
	{nameWords, regexp.MustCompile(`(?i)(?:^|[^a-z0-9])` + secretName + `=["']?\$\{[a-z0-9_]+:?[-=]` + value), 1, nil},
	{words("set"), regexp.MustCompile(`(?i)\bset\s+\S*` + secretName + `\s+([a-z0-9+/_.-]+)`), 1, nil},
	{words("mysql"), regexp.MustCompile(`(?i)\bmysql(?:dump|admin)?\b[^\n;|&]*?\s-p(` + masked + `|[^\s"'=]+)`), 1, nil},
	{words("redis-cli login mongo"), regexp.MustCompile(`(?i)\b(?:redis-cli\b[^\n;|&]*?\s-a|(?:(?:docker|podman)\s+login|mongo[a-z]*)\b[^\n;|&]*?\s-p)\s+` + value), 1, nil},
	{words("curl"), regexp.MustCompile(`(?i)\bcurl\b[^\n;|&]*?\s(?:-u|--user|--proxy-user)[= ]?\s*["']?[^\s:"']+:(` + masked + `|[^\s"']+)`), 1, nil},
	{words("key= signature= sig= token="), regexp.MustCompile(`(?i)\b(?:AccountKey|SharedAccessKey|SharedAccessSignature|sig|X-Amz-Signature|X-Amz-Security-Token|X-Goog-Signature)=([a-z0-9%+/_-]{16,}={0,2})`), 1, nil},
	{words("sshpass"), regexp.MustCompile(`\bsshpass\s+-p\s*` + value), 1, nil},
}

// reference is a value that only says where the secret is, or would compute
// it: the shell must be seen to do so.
var reference = regexp.MustCompile(`^["']?(?:[$` + "`" + `%@<]|` + masked + `["']?(?:$|[$<>` + "`" + `]))`)

// noSecret is a value that is none: what settings say instead of a secret.
var noSecret = regexp.MustCompile(`(?i)^["']?(?:true|false|null|none|nil|yes|no|on|off|[0-9]{1,5}|\*+|x{3,}|str|string|int|bool|bytes|any)?["']?$`)

type span struct{ start, end int }

// SecretShaped says whether text holds something in the shape of a secret.
// Known forms only: a judge cannot tell a random word from a password.
func SecretShaped(text string) bool { return len(secrets(text)) > 0 }

// secrets are the spans of text that look like secrets, in order and apart.
func secrets(text string) []span {
	var found []span
	low := strings.ToLower(text)
	has := func(word string) bool { return strings.Contains(low, word) }
	for _, s := range shapes {
		if !slices.ContainsFunc(s.needs, has) {
			continue
		}
		for _, at := range s.re.FindAllStringSubmatchIndex(text, -1) {
			start, end := at[2*s.group], at[2*s.group+1]
			if start < 0 || s.group > 0 && plain(text[start:end]) || s.skip != nil && s.skip.MatchString(text[start:end]) {
				continue
			}
			if s.group > 0 {
				end = min(end, start+untilRun(text[start:min(end+1, len(text))]))
			}
			found = append(found, span{start, end})
		}
	}
	slices.SortFunc(found, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	apart := found[:0]
	for _, s := range found {
		if n := len(apart); n > 0 && s.start <= apart[n-1].end {
			apart[n-1].end = max(apart[n-1].end, s.end)
			continue
		}
		apart = append(apart, s)
	}
	return apart
}

// untilRun is how much of a value, given with the sign behind it, stands in front
// of what a shell would run in it: TOKEN=x$(rm -rf /) must not hide its command behind a mask.
func untilRun(value string) int {
	end := len(value)
	for _, sign := range []string{"$(", "${", "`", "<(", ">("} {
		if i := strings.Index(value, sign); i > 0 {
			end = min(end, i)
		}
	}
	return end
}

func plain(value string) bool { return reference.MatchString(value) || noSecret.MatchString(value) }

// masker masks the texts of one brief. The same secret has the same number
// everywhere, so that a judge can tell that it is the same; neither its length
// nor its ends are shown.
type masker struct {
	numbers map[string]int
	where   []string
	// done are the texts that were masked: a command stands in several facts.
	done map[string]string
}

func newMasker() *masker { return &masker{numbers: map[string]int{}, done: map[string]string{}} }

// mask is text with each secret in it replaced by "[masked N]"; fact is where
// it stands.
func (m *masker) mask(fact, text string) string {
	masked, known := m.done[text]
	if !known {
		masked = m.replace(text)
		m.done[text] = masked
	}
	if masked != text && !slices.Contains(m.where, fact) {
		m.where = append(m.where, fact)
	}
	return masked
}

func (m *masker) replace(text string) string {
	var b strings.Builder
	last := 0
	for _, s := range secrets(text) {
		secret := text[s.start:s.end]
		n, known := m.numbers[secret]
		if !known {
			n = len(m.numbers) + 1
			m.numbers[secret] = n
		}
		fmt.Fprintf(&b, "%s[masked %d]", text[last:s.start], n)
		last = s.end
	}
	if last == 0 {
		return text
	}
	return b.String() + text[last:]
}

func (m *masker) all(fact string, texts []string) []string {
	var out []string
	for _, t := range texts {
		out = append(out, m.mask(fact, t))
	}
	return out
}

// Mask is text with everything in the shape of a secret replaced by
// "[masked N]", for what does not come from New.
func Mask(text string) string { return newMasker().mask("", text) }
