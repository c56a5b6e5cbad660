// Package llmtest plays a model server for tests: the Anthropic Messages, OpenAI
// Responses and OpenAI Chat Completions APIs on loopback, with answers that the
// test chooses. One server speaks all three, by the path it is asked at.
package llmtest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// Answer answers one request, in the words of the API it was asked in.
type Answer func(w http.ResponseWriter, q Question)

// Server is a running model server.
type Server struct {
	// URL is the base URL for every provider.
	URL string

	mu      sync.Mutex
	asked   []Question
	answers []Answer
}

// Start starts a server that gives answers in order and repeats the last one;
// it ends with the test.
func Start(t testing.TB, answers ...Answer) *Server {
	t.Helper()
	s := &Server{answers: answers}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	s.URL = h.URL
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	q := Question{Header: r.Header, Path: r.URL.Path, Body: body, Left: r.Context().Done()}
	if err == nil {
		err = q.read()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.next(q)(w, q)
}

func (s *Server) next(q Question) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, q)
	return s.answers[min(len(s.asked), len(s.answers))-1]
}

// Asked is every question so far.
func (s *Server) Asked() []Question {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}
