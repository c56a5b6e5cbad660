package cli

import (
	"net"
	"strings"
	"testing"

	"github.com/assent-dev/assent/pkg/protocol"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	d := newDesk(t, protocol.RoleTerminal)
	stranger := newDesk(t, protocol.RoleTerminal)
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deaf.Close() })
	go func() {
		for {
			c, err := deaf.Accept()
			if err != nil {
				return
			}
			c.Write([]byte("220 mail\r\n")) //nolint:errcheck // the other side may be gone
			c.Close()
		}
	}()
	creds := d.vars["ASSENT_CREDS"]
	rows := []struct {
		name string
		vars map[string]string
		args []string
		code int
		want string
	}{
		{"credentials that it takes, by the environment", d.vars, nil, ExitOK, ""},
		{"credentials that it takes, by flags", nil, []string{"--nats", d.node.ClientURL(), "--creds", creds}, ExitOK, ""},
		{"a server alone", nil, []string{"--nats", d.node.ClientURL()}, ExitOK, ""},
		{"a server alone, beside credentials for another", d.vars, []string{"--nats", stranger.node.ClientURL()}, ExitOK, ""},
		{"another node's credentials", nil, []string{"--nats", stranger.node.ClientURL(), "--creds", creds}, ExitFailure, "refused"},
		{"nobody there", nil, []string{"--nats", "nats://127.0.0.1:1"}, ExitFailure, "no NATS server"},
		{"nobody there for credentials", nil, []string{"--nats", "nats://127.0.0.1:1", "--creds", creds}, ExitFailure, "no NATS server"},
		{"something else there", nil, []string{"--nats", "nats://" + deaf.Addr().String()}, ExitFailure, "is no NATS server"},
		{"no address", nil, nil, ExitUsage, "--nats"},
		{"an address that is none", nil, []string{"--nats", "here"}, ExitUsage, "host:port"},
		{"a credentials file that is none", nil, []string{"--nats", d.node.ClientURL(), "--creds", "/nonexistent"}, ExitFailure, "creds issue"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			at := &logDesk{vars: row.vars}
			code, out, errs := at.typed(t, Health, append([]string{"health"}, row.args...)...)
			if code != row.code || out != "" || !strings.Contains(errs, row.want) {
				t.Errorf("exit %d, %q, %q; want exit %d and %q", code, out, errs, row.code, row.want)
			}
		})
	}
}
