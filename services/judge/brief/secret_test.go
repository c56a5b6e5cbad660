package brief

import (
	"slices"
	"strings"
	"testing"
)

// put joins parts of a sample at run time: no whole sample stands in the source,
// so that scanners of repositories find no key here.
func put(parts ...string) string { return strings.Join(parts, "") }

func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	const m = "[masked 1]"
	jwt := put("eyJhbGciOiJIUzI1NiJ9", ".eyJzdWIiOiIxMjM0In0", ".c2lnbmF0dXJl")
	pem := put("-----BEGIN RSA PRIV", "ATE KEY-----\nMIIEpAIBAAKCAQEA\nabc=\n-----END RSA PRIV", "ATE KEY-----")
	rows := []struct{ name, text, want string }{
		{"a model provider's key", put("echo sk-", "ant-api03-abcdefghijklmnop"), "echo " + m},
		{"a payment key", put("x sk_", "live_abcdefghijklmnop1234 y"), "x " + m + " y"},
		{"a code host's token", put("git clone ghp", "_abcdefghijklmnop0123"), "git clone " + m},
		{"a fine-grained token", put("github", "_pat_abcdefghijklmnop_0123"), m},
		{"another code host's", put("gl", "pat-abcdefghijklmnop0123"), m},
		{"a chat token", put("xox", "b-123456789012-abcdef"), m},
		{"a cloud's key id", put("AKI", "AIOSFODNN7EXAMPLE"), m},
		{"a cloud's API key", put("AIz", "aSyA0123456789abcdefghijklmnopqrstuv"), m},
		{"a package registry's", put("npm", "_abcdefghijklmnopqrstuvwxyz0123456789"), m},
		{"a vault's", put("hv", "s.CAESIabcdefghijklmnopqrst"), m},
		{"a seed of Assent's own keys", put("SU", "AIBDPBAUTWCWBKIO6XHQNINK5FWJW4OHLXC3HQ2KFE4PEJUA44CNHTC4"), m},
		{"an age key", put("AGE-SECRET", "-KEY-1QQPQZRFR7ZZ2WCV4QZTE8"), m},
		{"a bot's token", put("1234567890", ":AAabcdefghijklmnopqrstuvwxyz0123456"), m},
		{"a web hook", put("curl https://hooks.slack.com/serv", "ices/T000/B000/XXXXabcd"), "curl https://hooks.slack.com/services/" + m},
		{"a web token", "-H 'X: " + jwt + "'", "-H 'X: " + m + "'"},
		{"a private key", "echo '" + pem + "' > f", "echo '" + m + "' > f"},
		{"a private key without an end", pem[:60], m},
		{"a password in an address", "psql postgres://app:hunter2@db/x", "psql postgres://app:" + m + "@db/x"},
		{"a password with an at sign", "psql postgres://app:hun@ter2@db/x", "psql postgres://app:" + m + "@db/x"},
		{"a token for a user in an address", "git push https://0123456789abcdef0123@host/r", "git push https://" + m + "@host/r"},
		{"a header", `curl -H "Authorization: Bearer abc.def" x`, `curl -H "Authorization: Bearer ` + m + `" x`},
		{"a header in small letters", `curl -H 'authorization:Basic dXNlcjpwYXNz' x`, `curl -H 'authorization:Basic ` + m + `' x`},
		{"a header of a scheme of its own", `Authorization: abcdef`, `Authorization: ` + m},
		{"a header of an API", `-H "X-Api-Key: 12345678"`, `-H "X-Api-Key: ` + m + `"`},
		{"cookies", `-H 'Cookie: sid=abc; t=1'`, `-H 'Cookie: ` + m + `'`},
		{"a bearer without its header", `echo bearer abcdefgh12`, `echo bearer ` + m},
		{"a setting", "DB_PASSWORD=hunter2 ./run", "DB_PASSWORD=" + m + " ./run"},
		{"a setting in quotes", `export API_KEY="a b c" && x`, `export API_KEY=` + m + ` && x`},
		{"a setting in several parts", `PASSWORD='it'\''s secret' ls`, `PASSWORD=` + m + ` ls`},
		{"a setting with an escaped blank", `TOKEN=abc\ def ls`, `TOKEN=` + m + ` ls`},
		{"a setting in a text for a shell", `bash -c 'PASSWORD='\''abc def'\'' x'`, `bash -c 'PASSWORD=` + m},
		{"a setting behind what looks masked", `PASSWORD=[masked 1]real ls`, `PASSWORD=` + m + ` ls`},
		{"what is stored of a password", put("PASSWORD='$2", "y$10$abcdefghijklmnopqrstuv' x"), `PASSWORD='` + m + `' x`},
		{"a database's password", `mongosh -u app -p hunter2 x`, `mongosh -u app -p ` + m + ` x`},
		{"a setting in small letters", "set client_secret = s3cr3t", "set client_secret = " + m},
		{"a setting with a suffix", "AUTH_TOKEN_PROD=abcd1234", "AUTH_TOKEN_PROD=" + m},
		{"a setting with a prefix of its kind", "AWS_SECRET_ACCESS_KEY=abc/def+ghi", "AWS_SECRET_ACCESS_KEY=" + m},
		{"JSON", `{"user":"u","password":"hunter2","a":1}`, `{"user":"u","password":` + m + `,"a":1}`},
		{"YAML", "password: hunter2\nuser: u", "password: " + m + "\nuser: u"},
		{"a long option", "login --password hunter2 --user u", "login --password " + m + " --user u"},
		{"a long option with a sign", "login --api-key=abc123", "login --api-key=" + m},
		{"a client's user and password", "curl -u admin:hunter2 https://x", "curl -u admin:" + m + " https://x"},
		{"a signed address", "curl 'https://x/y?sig=abcdefghijklmnop%2B1'", "curl 'https://x/y?sig=" + m + "'"},
		{"a query of an address", "curl https://x/y?access_token=abcdef&z=1", "curl https://x/y?access_token=" + m + "&z=1"},
		{"a setting in one word", "refreshToken: abc123", "refreshToken: " + m},
		{"a registry's setting", "echo //registry.example.com/:_authToken=abc123", "echo //registry.example.com/:_authToken=" + m},
		{"a setting of a web framework", "SECRET_KEY_BASE=abc123", "SECRET_KEY_BASE=" + m},
		{"a setting that is short for it", "DB_PASS=abc123 OTHER_PWD=xyz789", "DB_PASS=" + m + " OTHER_PWD=[masked 2]"},
		{"a setting set by a command", "aws configure set aws_secret_access_key abc/def", "aws configure set aws_secret_access_key " + m},
		{"a password at its option", "mysql -u root -phunter2 db", "mysql -u root -p" + m + " db"},
		{"a password of a cache's client", "redis-cli -h x -a hunter2 ping", "redis-cli -h x -a " + m + " ping"},
		{"a password of a registry", "docker login -u u -p hunter2 host", "docker login -u u -p " + m + " host"},
		{"a password for a key", "openssl rsa -passin pass:hunter2", "openssl rsa -passin pass:" + m},
		{"a setting that goes on as a command", "TOKEN=x1y2$(rm -rf /) ls", "TOKEN=" + m + "$(rm -rf /) ls"},
		{"a header that goes on as a command", `curl -H "Authorization: Bearer x1y2z3w4` + "`id`" + `" x`, `curl -H "Authorization: Bearer ` + m + "`id`" + `" x`},
		{"an option that goes on as a command", "login --password x1$(id)", "login --password " + m + "$(id)"},
		{"a setting that begins like an option", "SECRET=-x1y2z3 ls", "SECRET=" + m + " ls"},
		{"a setting's own default", "curl -d ${TOKEN:-x1y2z3} x", "curl -d ${TOKEN:-" + m + "} x"},
		{"a setting from another one, or else itself", `PASSWORD="${PW:-x1y2z3}" ls`, `PASSWORD="${PW:-` + m + `}" ls`},
		{"a password with a slash", "psql 'postgres://app:hun/ter2@db/x'", "psql 'postgres://app:" + m + "@db/x'"},
		{"the same secret twice", "A_TOKEN=abc123 B_TOKEN=abc123", "A_TOKEN=" + m + " B_TOKEN=" + m},
		{"two secrets", "A_TOKEN=abc123 B_TOKEN=xyz789", "A_TOKEN=" + m + " B_TOKEN=[masked 2]"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if got := Mask(row.text); got != row.want || !SecretShaped(row.text) {
				t.Errorf("%q", got)
			}
			if again := Mask(row.want); again != row.want || SecretShaped(row.want) {
				t.Errorf("masked once more: %q", again)
			}
		})
	}
}

// TestWhatIsNoSecretStays: a judge must see what a command does. What computes
// a secret or names its place is what it has to judge.
func TestWhatIsNoSecretStays(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a variable":                                           "curl -H \"Authorization: $TOKEN\" x",
		"a setting from a variable":                            `export TOKEN="$SECRET"`,
		"a setting that runs a command":                        "TOKEN=$(rm -rf /) ls",
		"a setting in backticks":                               "TOKEN=`rm -rf /` ls",
		"an empty setting":                                     "PASSWORD= ls",
		"a setting that is switched off":                       "TOKEN=false ls",
		"a setting that is a small number":                     "TOKENS=5 MAX_TOKEN=400",
		"an option before another":                             "login --password --user u",
		"a default that is a variable":                         "echo ${TOKEN:-$OTHER} ${PASSWORD:-} ${HOME:-/root}",
		"an address with a port and a user's name in its path": "curl http://127.0.0.1:8080/a/b@c http://h:80/@x",
		"a file with the value":                                "docker run --secret @file x",
		"a commit":                                             "git show 0123456789abcdef0123456789abcdef01234567",
		"an image's digest":                                    "docker pull a@sha256:" + strings.Repeat("0123456789abcdef", 4),
		"a path":                                               "/home/dev/shop/packages/shop/src/a.ts",
		"a path of tokens":                                     "/srv/tokens/secret/password.go",
		"a remote":                                             "git clone ssh://git@host/a/b.git",
		"a remote without a scheme":                            "git clone git@host:a/b.git",
		"an address with a port":                               "curl http://127.0.0.1:8080/x@y",
		"an ordinary header":                                   "curl -H 'Accept: text/html' x",
		"a word with the letters":                              "grep -rn tokenize secretary",
		"the sign of one masked before":                        "TOKEN=[masked 3] ls",
		"a file with the password":                             "login --password-file /run/secrets/p TOKEN_FILE=/x --password-stdin",
		"the type of a setting":                                "def f(token: str, password: string): pass",
		"the working directory":                                "PWD=/srv OLDPWD=/tmp ls",
		"a port at its option":                                 "mysql -P 3306 --protocol=tcp -p db",
		"a name that begins like a key":                        "pip install sk-learn task-0123456789abcdefgh",
		"a script's name":                                      "npm run sk-build",
		"a public key":                                         "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
		"a search for a password":                              "grep -rn 'password' .",
	} {
		t.Run(name, func(t *testing.T) {
			if got := Mask(text); got != text || SecretShaped(text) {
				t.Errorf("%q", got)
			}
		})
	}
}

// FuzzMask: what is masked holds nothing that looks like a secret any more, and
// a sure secret put anywhere between blanks does not come through.
func FuzzMask(f *testing.F) {
	secret := put("ghp", "_abcdefghijklmnopqrstuvwxyz0123456789")
	for _, s := range []string{"", "TOKEN=", "Authorization: Bearer ", "--password ", "://u:", "-----BEGIN PRIVATE KEY-----", "[masked 1] token=[masked 2]x", `{"password":"`, "cookie: a'b", "token=token=token=a"} {
		f.Add(s, "@x")
		f.Add("x", s)
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		masked := Mask(before + " " + secret + " " + after)
		if strings.Contains(masked, secret) {
			t.Errorf("%q holds the secret", masked)
		}
		for _, s := range shapes {
			isIn := func(word string) bool { return strings.Contains(strings.ToLower(before), word) }
			if s.re.MatchString(before) && !slices.ContainsFunc(s.needs, isIn) && !strings.ContainsAny(before, "\u017f\u212a") {
				t.Errorf("%q matches %s and holds none of %q", before, s.re, s.needs)
			}
		}
		if again := Mask(masked); SecretShaped(again) {
			t.Errorf("%q, masked twice %q, still looks like a secret: %v", masked, again, secrets(again))
		}
	})
}
