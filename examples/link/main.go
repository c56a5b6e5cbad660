// Command link is a whole judge: it stops pushes that rewrite history.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
)

const name = "no-force-push"

func judge(_ context.Context, r link.Request) (protocol.Verdict, error) {
	for _, open := range r.Asks {
		words := strings.Fields(open.Value)
		if open.Surface == "bash" && slices.Contains(words, "push") && slices.Contains(words, "--force") {
			return link.Deny("A forced push rewrites history for everybody. Push without --force, or use --force-with-lease."), nil
		}
	}
	return link.Defer("no forced push"), nil
}

func serve(ctx context.Context, url, creds string) error {
	nc, err := link.Connect(url, creds, name)
	if err != nil {
		return err
	}
	defer nc.Close()
	ready := link.Ready(func() { log.Printf("link %s serves", name) })
	return link.Serve(ctx, nc, name, judge, link.Version("1.0.0"), ready)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	url, creds := os.Getenv("ASSENT_NATS"), os.Getenv("ASSENT_CREDS")
	if url == "" || creds == "" {
		log.Fatal("set ASSENT_NATS to the server's address and ASSENT_CREDS to a file that `assent creds issue --role judge --name " + name + " --out FILE` writes")
	}
	if err := serve(ctx, url, creds); err != nil {
		log.Fatal(err)
	}
}
