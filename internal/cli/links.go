package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Links is `assent links`: which links the chain names, which run, and what
// does not fit.
func Links(env *Env) *cobra.Command {
	var t target
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "links",
		Short: "Links named in the chain, links running, and what does not fit",
		Long: "Compares the policy's authorizerChain with the links that answer discovery on the node.\n" +
			"A link that is named and does not run is skipped for every ask; one that runs and is not named\n" +
			"decides nothing; one that says that it cannot work takes no asks until it can. STATE is what a judge\n" +
			"says of its model: whether it passed the self-test, whether its circuit breaker is open, and since\n" +
			"when it has deferred every ask that needs the model.",
		Example: "  assent links\n  assent links --json",
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runLinks(cmd.Context(), env, t, asJSON)
		},
	}
	t.flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// linkRow is one link, named or running or both.
type linkRow struct {
	Name string `json:"name"`
	// Place is where it stands in the chain, from 1; 0 when it is not named.
	Place   int `json:"place"`
	Running int `json:"running"`
	// Versions are those of the running ones, without repeats.
	Versions []string `json:"versions"`
	// Health is why a running one says that it cannot work; "" when none does.
	Health string `json:"health"`
	// Unable is how many of the running ones say so.
	Unable int `json:"unable"`
	// State is the worst that a running one says of its model: "ok", "untested",
	// what its self-test said, since when it fails safe, an open breaker; "" when
	// none says.
	State string `json:"state"`
	// Failing is how many of the running ones do not get a verdict out of their model.
	Failing int `json:"failing"`
	// Breaker is the worst state of a running one's circuit breaker: "closed",
	// "half-open", "open"; "" when none says.
	Breaker string `json:"breaker"`
	worst   int    // the rank of State
	// Problem is "" when it fits.
	Problem string `json:"problem"`
}

// What may not fit.
const (
	problemMissing  = "missing"
	problemUnnamed  = "unnamed"
	problemUnable   = "unable"
	problemFailing  = "failing"
	problemVersions = "versions_differ"
)

var problemTexts = map[string]string{
	problemMissing:  "named, but does not run: it is skipped",
	problemUnnamed:  "runs, but is not named: it decides nothing",
	problemUnable:   "cannot work",
	problemFailing:  "defers every ask that needs its model",
	problemVersions: "runs in different versions under one name",
}

// problemText says for people what does not fit; "" when it fits.
func (r linkRow) problemText() string {
	text := problemTexts[r.Problem]
	if r.Problem == problemUnable {
		if r.Unable < r.Running {
			text = fmt.Sprintf("%d of %d %s", r.Unable, r.Running, text)
		}
		text += ": " + r.Health
	}
	if r.Problem == problemFailing && r.Failing < r.Running {
		text = fmt.Sprintf("%d of %d %s", r.Failing, r.Running, text)
	}
	// Worth a word beside another problem too: asks go to either.
	if len(r.Versions) > 1 && r.Problem != problemVersions {
		text += "; " + problemTexts[problemVersions]
	}
	return text
}

func runLinks(ctx context.Context, env *Env, t target, asJSON bool) error {
	p, err := t.resolve(env, protocol.RoleOperator)
	if err != nil {
		return err
	}
	log := (&logging{quiet: true}).logger(env)
	nc, err := bus.Connect(ctx, bus.Config{URL: p.NATS, Creds: p.Creds, Role: protocol.RoleOperator, Logger: log})
	if err != nil {
		return err
	}
	defer nc.Close()
	chain, err := namedLinks(ctx, nc)
	if err != nil {
		return err
	}
	running, err := runningLinks(ctx, nc, p.Node)
	if err != nil {
		return err
	}
	rows := compareLinks(chain, running)
	if asJSON {
		return printLinksJSON(env, p.Node, rows)
	}
	return printLinks(env, p.Node, rows)
}

func printLinksJSON(env *Env, node string, rows []linkRow) error {
	b, err := json.Marshal(struct {
		Node  string    `json:"node"`
		Links []linkRow `json:"links"`
	}{node, rows}, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("encoding links: %w", err)
	}
	_, err = fmt.Fprintf(env.Stdout, "%s\n", b)
	return err
}

// namedLinks reads the chain from the fleet's policy. No policy names no links.
func namedLinks(ctx context.Context, nc *nats.Conn) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	js, err := bus.JetStream(nc)
	if err != nil {
		return nil, err
	}
	kv, err := js.KeyValue(ctx, protocol.BucketPolicy)
	if err != nil {
		return nil, unprepared(fmt.Errorf("opening the policy: %w", err))
	}
	entry, err := kv.Get(ctx, policy.LayerFleet)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the policy: %w", err)
	}
	snapshot, err := policy.Compile(policy.LayerFleet, entry.Value())
	if err != nil {
		return nil, fmt.Errorf("the policy in force does not parse; mend it and push it again with `assent policy push FILE`: %w", err)
	}
	return snapshot.Chain(), nil
}

// unprepared adds the remedy to the failure of somebody who looks for a stream
// or bucket that nobody has made yet.
func unprepared(err error) error {
	if errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("%w: run `assent node prepare` first", err)
	}
	return err
}

// How long to listen for running links: until none has answered for a while.
const (
	linksStall = 300 * time.Millisecond
	linksLimit = 3 * time.Second
	linksMost  = 10_000
)

// runningLink is one worker as it announces itself.
type runningLink struct {
	name, version string
	// health is why it cannot work; "" when it can, or does not say.
	health string
	state  linkState
}

// runningLinks asks all links of node to announce themselves.
func runningLinks(ctx context.Context, nc *nats.Conn, node string) ([]runningLink, error) {
	subject, err := micro.ControlSubject(micro.InfoVerb, protocol.ServiceLink, "")
	if err != nil {
		return nil, fmt.Errorf("asking for running links: %w", err)
	}
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, fmt.Errorf("asking for running links: %w", err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // the connection closes next
	if err := nc.PublishRequest(subject, inbox, nil); err != nil {
		return nil, fmt.Errorf("asking for running links: %w", err)
	}
	var found []runningLink
	for end := time.Now().Add(linksLimit); time.Now().Before(end) && len(found) < linksMost; {
		msg, err := nextReply(ctx, sub)
		if errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("listening for running links: %w", err)
		}
		if l, ok := announced(msg.Data, node); ok {
			found = append(found, l)
		}
	}
	return found, nil
}

func nextReply(ctx context.Context, sub *nats.Subscription) (*nats.Msg, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	msg, err := sub.NextMsg(linksStall)
	if err == nil && len(msg.Data) == 0 && msg.Header.Get("Status") == "503" {
		return nil, nats.ErrNoResponders
	}
	return msg, err
}

// announced reads what one service says of itself; ok is false for another
// node's and for what is no link.
func announced(data []byte, node string) (runningLink, bool) {
	var info micro.Info
	if json.Unmarshal(data, &info) != nil || info.Name != protocol.ServiceLink || info.Metadata["node"] != node {
		return runningLink{}, false
	}
	name := info.Metadata["link"]
	health := protocol.Safe(info.Metadata[link.MetadataHealth], 4*shortText, false)
	if health == link.HealthOK {
		health = ""
	}
	return runningLink{
		name: name, version: cmp.Or(info.Metadata["version"], info.Version), health: health, state: stateOf(info.Metadata),
	}, protocol.ValidToken(name)
}

// compareLinks puts the chain's links first, in its order, then the others by
// name.
func compareLinks(chain []string, running []runningLink) []linkRow {
	rows := make([]linkRow, 0, len(chain))
	for i, name := range chain {
		rows = append(rows, linkRow{Name: name, Place: i + 1, Versions: []string{}})
	}
	for _, r := range running {
		i := slices.IndexFunc(rows, func(row linkRow) bool { return row.Name == r.name })
		if i < 0 {
			i = len(rows)
			rows = append(rows, linkRow{Name: r.name, Versions: []string{}})
		}
		rows[i].Running++
		rows[i].Health = cmp.Or(rows[i].Health, r.health)
		if r.health != "" {
			rows[i].Unable++
		}
		rows[i].add(r.state)
		if !slices.Contains(rows[i].Versions, r.version) {
			rows[i].Versions = append(rows[i].Versions, r.version)
		}
	}
	slices.SortStableFunc(rows[len(chain):], func(a, b linkRow) int { return strings.Compare(a.Name, b.Name) })
	for i := range rows {
		slices.Sort(rows[i].Versions)
		rows[i].Problem = rows[i].problem()
	}
	return rows
}

func (r linkRow) problem() string {
	switch {
	case r.Place > 0 && r.Running == 0:
		return problemMissing
	case r.Place == 0:
		return problemUnnamed
	case r.Health != "":
		return problemUnable
	case r.Failing > 0:
		return problemFailing
	case len(r.Versions) > 1:
		return problemVersions
	default:
		return ""
	}
}

func printLinks(env *Env, node string, rows []linkRow) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintf(env.Stdout, "node %s: the chain names no links and none runs\n", node)
		return err
	}
	return table(env.Stdout, func(w io.Writer) {
		fmt.Fprintln(w, "PLACE\tLINK\tRUNNING\tVERSION\tSTATE\tPROBLEM")
		for _, r := range rows {
			place := "-"
			if r.Place > 0 {
				place = fmt.Sprint(r.Place)
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", place, r.Name, r.Running, short(strings.Join(r.Versions, ", ")), r.State, r.problemText())
		}
	})
}

// table prints rows of cells that tabs separate, in columns, without blanks at
// the ends of lines.
func table(out io.Writer, fill func(io.Writer)) error {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fill(w)
	if err := w.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(out, strings.TrimRight(line, " \n")); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	}
	return nil
}
