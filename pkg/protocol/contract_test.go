package protocol

import (
	"strings"
	"testing"
)

// contractSamples are the messages as the contract prints them, filled in: the
// fields that it names and no other, in its order.
var contractSamples = []struct{ message, name, text string }{
	{"ask", "every field", `{"v":1,"id":"01KB9XYZ8P3N5Q7R9S1T3V5W7X","agent":"ci-42","agent_name":"reviewer","source":"tool_call",
		"session":{"id":"s1","parent":"s0","root":"s0","interactive":false},
		"tool":{"name":"bash","call_id":"t1","input":{"command":"make release"}},
		"cwd":"/src","home":"/home/ann","platform":"darwin",
		"paths":[{"raw":"../lib","resolved":"/lib"}],
		"project":{"id":"git.example.org/shop","root":"/src","digest":"sha256:00"},
		"intent":"ship it","max_wait_ms":0}`},
	{"ask", "the least", `{"v":1,"id":"01KB9XYZ8P3N5Q7R9S1T3V5W7X","agent":"ci-42","tool":{"name":"bash","input":{}}}`},
	{"cancel", "every field", `{"v":1,"ask":"01KB9XYZ8P3N5Q7R9S1T3V5W7X","reason":"the person typed something else"}`},
	{"cancel_receipt", "withdrawn", `{"v":1,"ask":"01KB9XYZ8P3N5Q7R9S1T3V5W7X","cancelled":true}`},
	{"verdict", "allow", `{"v":1,"ask":"01KB9XYZ8P3N5Q7R9S1T3V5W7X","verdict":"allow","reason":"reads only","failure":""}`},
	{"verdict", "deny", `{"v":1,"ask":"01KB9XYZ8P3N5Q7R9S1T3V5W7X","verdict":"deny","reason":"wipes a disk","failure":""}`},
	{"verdict", "defer for want of money", `{"v":1,"ask":"01KB9XYZ8P3N5Q7R9S1T3V5W7X","verdict":"defer","reason":"","failure":"over_budget"}`},
	{"link_request", "every field", `{"v":1,"link":"model-judge",
		"ask":{"v":1,"id":"01KB9XYZ8P3N5Q7R9S1T3V5W7X","agent":"ci-42","tool":{"name":"read","input":{"path":"/x/y"}}},
		"asks":[{"surface":"external_directory","value":"/x/y","matched_pattern":"*","origin":"fleet","unit":0}],
		"units":[],"deadline":"2026-03-02T09:30:08Z","query":"assent.v1.main.query.g1.c1","log":"assent.v1.main.log.g1.c1"}`},
	{"query", "a value", `{"v":1,"surface":"bash","value":"rm -rf x","cwd":"","agent_name":""}`},
	{"query", "a tool", `{"v":1,"tool":"write"}`},
	{"check", "every field", `{"v":1,"state":"deny","matched_pattern":"rm *","origin":"fleet","reason":"no"}`},
	{"terminal_request", "every field", `{"v":1,"kind":"human",
		"ask":{"v":1,"id":"01KB9XYZ8P3N5Q7R9S1T3V5W7X","agent":"ci-42","tool":{"name":"bash","input":{"command":"git push"}}},
		"asks":[{"surface":"bash","value":"git push","matched_pattern":"*","origin":"fleet","unit":0}],
		"units":[{"text":"git push","decision":"ask","pattern":"*","note":""}],"trail":[],"suggest":["git push *"],"deadline":"2026-03-02T17:30:00Z",
		"prompt":{"name":"Push","description":"","guidance":"","highlight":[{"start":0,"end":3}],"approve_label":"","edit_label":"","reject_label":""}}`},
	{"terminal_verdict", "a person's allow", `{"v":1,"ask":"01KB9XYZ8P3N5Q7R9S1T3V5W7X","verdict":"allow","outcome":"allowed_by_human","reason":"","note":"",
		"abort":false,"edited_input":null,"grant":null,"approver":"oncall-1"}`},
	{"terminal_verdict", "silence", `{"v":1,"ask":"01KB9XYZ8P3N5Q7R9S1T3V5W7X","verdict":"deny","outcome":"expired","reason":"","note":"",
		"abort":false,"edited_input":null,"grant":null,"approver":""}`},
	{"answer", "an allow with a grant", `{"v":1,"ask":"01KB9XYZ8P3N5Q7R9S1T3V5W7X","verdict":"allow","approver":"oncall-1","reason":"","note":"",
		"abort":false,"edited_input":null,"grant":{"scope":"tree","surface":"bash","patterns":["git push *"],"expires":"","uses":0}}`},
	{"answer", "a deny", `{"v":1,"ask":"01KB9XYZ8P3N5Q7R9S1T3V5W7X","verdict":"deny","approver":"oncall-1","reason":"not today","note":"wait for monday",
		"abort":true,"edited_input":null,"grant":null}`},
	{"answer_receipt", "stored", `{"v":1,"ask":"01KB9XYZ8P3N5Q7R9S1T3V5W7X","accepted":true,"answered_by":"oncall-1","verdict":"allow","at":"2026-03-02T09:31:00Z","error":""}`},
	{"answer_receipt", "too late", `{"v":1,"ask":"01KB9XYZ8P3N5Q7R9S1T3V5W7X","accepted":false,"answered_by":"oncall-2","verdict":"deny","at":"2026-03-02T09:30:30Z","error":""}`},
	{"log_record", "every field", `{"v":1,"level":"review","event":"model_judge.decision","fields":{"verdict":"deny"}}`},
	{"error_reply", "an id that could not be read", `{"v":1,"ask":"","error":{"code":"invalid","message":"malformed message","remedy":"send JSON"}}`},
	{"progress", "a link", `{"v":1,"ask":"01KB9XYZ8P3N5Q7R9S1T3V5W7X","status":"pending","stage":"link:model-judge","since":"2026-03-02T09:30:02Z"}`},
	{"progress", "a person", `{"v":1,"ask":"01KB9XYZ8P3N5Q7R9S1T3V5W7X","status":"pending","stage":"terminal:human","since":"2026-03-02T09:30:02Z"}`},
	{"decision", "every field", `{"v":1,"ask":"01KB9XYZ8P3N5Q7R9S1T3V5W7X","node":"main","gate":"g-7f3a","agent":"ci-42","session":{"id":"s1"},
		"result":"deny","outcome":"denied_by_link","reason":"outside","note":"","abort":false,"edited_input":null,
		"surface":"external_directory","value":"/x/y","matched_pattern":"*","origin":"authorizer:model-judge",
		"decided_by":{"kind":"link","name":"model-judge","node":"main"},
		"trail":[{"link":"model-judge","verdict":"deny","failure":"","capped":false,"ms":412.0}],
		"asks":[{"surface":"external_directory","value":"/x/y","matched_pattern":"*","origin":"fleet","unit":0}],
		"policy":{"revision":12,"digest":"sha256:aa","project":"","modules":"","grants":""},"call_digest":"sha256:bb",
		"asked_at":"2026-03-02T09:30:00Z","decided_at":"2026-03-02T09:30:01Z"}`},
	{"review_record", "the gate's", `{"v":1,"event":"authorizer_chain_resolved","ask":"01KB9XYZ8P3N5Q7R9S1T3V5W7X","node":"main","at":"2026-03-02T09:30:00Z",
		"fields":{"links":["model-judge"]}}`},
}

func TestReadTheContractsSamples(t *testing.T) {
	for _, c := range contractSamples {
		t.Run(c.message+"/"+c.name, func(t *testing.T) {
			if _, _, err := sampleNamed(t, c.message).read([]byte(c.text)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestContractSamplesNameNoOtherField: each field that the contract prints is
// one that we know. An unknown one would be ignored in silence, so the samples
// are read once with unknown fields refused.
func TestContractSamplesNameNoOtherField(t *testing.T) {
	for _, c := range contractSamples {
		t.Run(c.message+"/"+c.name, func(t *testing.T) {
			if err := readKnownOnly(sampleNamed(t, c.message).value, c.text); err != nil {
				t.Error(err)
			}
			spoilt := strings.Replace(c.text, `{"v":1,`, `{"v":1,"zz":1,`, 1)
			if err := readKnownOnly(sampleNamed(t, c.message).value, spoilt); err == nil {
				t.Error("the check takes any field")
			}
		})
	}
}
