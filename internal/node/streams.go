package node

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/pkg/protocol"
)

// AuditorDurable is the one consumer of each stream of the record. The node
// makes it, since a role that may make consumers may aim them anywhere.
const AuditorDurable = "auditor"

// PendingMarkerLife is how long the mark of a deleted pending entry stays, for
// those who watch.
const PendingMarkerLife = 10 * time.Minute

// PresenceLife is how long an approver counts as present after its last word.
const PresenceLife = 60 * time.Second

// ProjectLife is how long what a project has of its own is kept that no ask names. It is
// renewed each day that one does, and outlives the longest wait for a person: an
// ask is ruled again under the same file when it is answered.
const ProjectLife = 32 * 24 * time.Hour

// policyHistory is how many revisions of the policy are kept; 64 is the most.
const policyHistory = 64

// DefaultReview bounds the review stream, in bytes: judges write there, and a
// judge must not fill the disk on which decisions are recorded.
const DefaultReview = 1 << 30

// StreamLimits bounds the streams. The zero value is one replica and no bound
// but the disk's.
type StreamLimits struct {
	// Replicas is 1 embedded and 3 in a cluster of three.
	Replicas int
	// Decisions and Review are the most bytes of the two streams; 0 is no bound of
	// the decisions but the disk's, and DefaultReview of the review log.
	// A full decision stream refuses: then nothing can be allowed. A full review
	// stream forgets its oldest records.
	Decisions int64
	Review    int64
	// MaxRecord is the largest record in bytes; 0 is the server's largest message.
	MaxRecord int32
}

// EnsureStreams makes the streams, buckets and consumers of node as they
// should be, or brings those that are there up to it. js needs the rights of an
// operator. It is safe to run again and by several at once.
func EnsureStreams(ctx context.Context, js jetstream.JetStream, node string, lim StreamLimits) error {
	if lim.Replicas == 0 {
		lim.Replicas = 1
	}
	streams, err := recordStreams(node, lim)
	if err != nil {
		return err
	}
	for _, cfg := range append(streams, presenceStream(lim)) {
		if _, err := js.CreateOrUpdateStream(ctx, cfg); err != nil {
			return fmt.Errorf("stream %s: %w", cfg.Name, err)
		}
	}
	for _, cfg := range streams {
		if _, err := js.CreateOrUpdateConsumer(ctx, cfg.Name, auditorConsumer()); err != nil {
			return fmt.Errorf("consumer %s of %s: %w", AuditorDurable, cfg.Name, err)
		}
	}
	for _, cfg := range buckets(lim) {
		if _, err := js.CreateOrUpdateKeyValue(ctx, cfg); err != nil {
			return fmt.Errorf("bucket %s: %w", cfg.Bucket, err)
		}
	}
	_, err = js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{
		Bucket: protocol.ObjectsModules, Description: "permission modules",
		Storage: jetstream.FileStorage, Replicas: lim.Replicas,
	})
	if err != nil {
		return fmt.Errorf("object bucket %s: %w", protocol.ObjectsModules, err)
	}
	return nil
}

func recordStreams(node string, lim StreamLimits) ([]jetstream.StreamConfig, error) {
	subjects, err := protocol.NewSubjects(node)
	if err != nil {
		return nil, err
	}
	decisions := jetstream.StreamConfig{
		Name: protocol.StreamDecisions, Subjects: []string{subjects.All(protocol.KindDecision)},
		Description: "every decision",
		Storage:     jetstream.FileStorage, Replicas: lim.Replicas,
		Retention: jetstream.LimitsPolicy,
		// Forgetting the oldest decision would make room for a second one on its ask.
		Discard:    jetstream.DiscardNew,
		MaxBytes:   unbounded(lim.Decisions),
		MaxMsgSize: int32(unbounded(int64(lim.MaxRecord))),
		DenyDelete: true, DenyPurge: true,
		// A direct read may come from a replica that is behind, and "not decided
		// yet" is a reason to decide.
		AllowDirect: false,
	}
	review := decisions
	review.Name = protocol.StreamReview
	review.Subjects = []string{subjects.All(protocol.KindReview)}
	review.Description = "the review log"
	// Losing the oldest narration is better than losing the newest.
	review.Discard = jetstream.DiscardOld
	review.MaxBytes = cmp.Or(lim.Review, DefaultReview)
	return []jetstream.StreamConfig{decisions, review}, nil
}

func unbounded(n int64) int64 {
	if n <= 0 {
		return -1
	}
	return n
}

// presenceStream is the presence bucket, made as a stream because a bucket
// always allows roll-ups: an approver may write its own key, and one message
// with the header Nats-Rollup: all would declare everybody else absent.
func presenceStream(lim StreamLimits) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: "KV_" + protocol.BucketPresence, Subjects: []string{"$KV." + protocol.BucketPresence + ".>"},
		Description: "approvers that are there",
		Storage:     jetstream.FileStorage, Replicas: lim.Replicas,
		MaxMsgsPerSubject: 1, MaxAge: PresenceLife, Discard: jetstream.DiscardNew,
		MaxMsgSize: 4096, Duplicates: PresenceLife,
		DenyDelete: true, AllowDirect: true, AllowRollup: false,
	}
}

func buckets(lim StreamLimits) []jetstream.KeyValueConfig {
	file := func(c jetstream.KeyValueConfig) jetstream.KeyValueConfig {
		c.Storage = jetstream.FileStorage
		c.Replicas = lim.Replicas
		return c
	}
	return []jetstream.KeyValueConfig{
		file(jetstream.KeyValueConfig{Bucket: protocol.BucketPolicy, Description: "policy layers", History: policyHistory}),
		// No TTL: an ask that runs out is an event to be recorded, not a
		// disappearance. The marker's life only lets the marks of deleted entries go.
		file(jetstream.KeyValueConfig{Bucket: protocol.BucketPending, Description: "asks that are not decided", LimitMarkerTTL: PendingMarkerLife}),
		file(jetstream.KeyValueConfig{Bucket: protocol.BucketGrants, Description: "remembered approvals", LimitMarkerTTL: PendingMarkerLife}),
		file(jetstream.KeyValueConfig{
			Bucket: protocol.BucketProjects, Description: "projects' own policies and modules, as agents uploaded them",
			TTL: ProjectLife, MaxValueSize: protocol.MaxProjectContent, LimitMarkerTTL: time.Second,
		}),
	}
}

func auditorConsumer() jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable: AuditorDurable, Description: "the auditor's place in the record",
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy, AckWait: 30 * time.Second,
		MaxAckPending: 1000, MaxDeliver: -1,
	}
}
