package protocol

import "testing"

func benchmarkRead[M any, P Message[M]](b *testing.B, m M) {
	text, err := Write[M, P](m)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read[M, P](text); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkWrite[M any, P Message[M]](b *testing.B, m M) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Write[M, P](m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadAsk(b *testing.B)       { benchmarkRead(b, sampleAsk()) }
func BenchmarkReadDecision(b *testing.B)  { benchmarkRead(b, sampleDecision()) }
func BenchmarkWriteAsk(b *testing.B)      { benchmarkWrite(b, sampleAsk()) }
func BenchmarkWriteDecision(b *testing.B) { benchmarkWrite(b, sampleDecision()) }

func BenchmarkDigest(b *testing.B) {
	a := sampleAsk()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.Digest("main"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseSubject(b *testing.B) {
	s, err := subjectsOf(b, "main").Decision(askID, "ci-42", "bash", FinalDeny)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseSubject(s); err != nil {
			b.Fatal(err)
		}
	}
}
