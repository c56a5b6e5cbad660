// Package protocol is Assent's contract on the wire: every message, every
// subject and every word that agents, gates, judges, terminals, approvers and
// auditors exchange. It imports neither NATS nor anything else of Assent, so an
// adapter in another language can be held against it line by line.
//
// Start at Ask, which an adapter sends, and Decision, which it gets. Read reads
// a message strictly and Write writes one; everything that is unknown, missing
// or broken is an error, never a yes.
package protocol
