package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/bus"
)

// healthTime bounds one health check.
const healthTime = 4 * time.Second

// Health is `assent health`: whether NATS answers, for the health check of a
// container that holds no shell.
func Health(env *Env) *cobra.Command {
	var address, creds string
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Whether NATS answers, for the health check of a container",
		Long: "With credentials: whether NATS takes them and answers. Without: whether a NATS server answers at\n" +
			"the address at all. Exit 0 or 1. To find out what is wrong, use `assent doctor`.",
		Example: "  assent health --nats nats://127.0.0.1:4222 --creds gate.creds",
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), healthTime)
			defer cancel()
			at := firstOf(address, env.Getenv("ASSENT_NATS"))
			if at == "" {
				return usagef("name the server with --nats or ASSENT_NATS")
			}
			// A server that is named is not asked with credentials meant for another.
			if creds == "" && address == "" {
				creds = env.Getenv("ASSENT_CREDS")
			}
			if creds == "" {
				return serverAnswers(ctx, at)
			}
			return serverTakes(ctx, at, creds)
		},
	}
	cmd.Flags().StringVar(&address, "nats", "", "address of the NATS server (default: ASSENT_NATS)")
	cmd.Flags().StringVar(&creds, "creds", "", "credentials file (default: ASSENT_CREDS, unless --nats names a server)")
	return cmd
}

// serverTakes connects and waits for one answer.
func serverTakes(ctx context.Context, at, creds string) error {
	nc, err := bus.Connect(ctx, bus.Config{URL: at, Creds: creds, Logger: quietLog()})
	if err != nil {
		return err
	}
	defer nc.Close()
	if err := nc.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("waiting for an answer of %s: %w", nc.ConnectedUrlRedacted(), err)
	}
	return nil
}

// serverAnswers reads the line with which a NATS server greets whoever connects.
func serverAnswers(ctx context.Context, at string) error {
	u, err := url.Parse(at)
	if err != nil || u.Host == "" {
		return usagef("--nats: want nats://host:port")
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return fmt.Errorf("no NATS server answers: %w", err)
	}
	defer conn.Close()
	if until, ok := ctx.Deadline(); ok {
		if err := conn.SetReadDeadline(until); err != nil {
			return fmt.Errorf("waiting for %s: %w", u.Host, err)
		}
	}
	line, err := bufio.NewReader(io.LimitReader(conn, 64<<10)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("waiting for %s: %w", u.Host, err)
	}
	if !strings.HasPrefix(line, "INFO {") {
		return fmt.Errorf("%s is no NATS server", u.Host)
	}
	return nil
}
