package cli

import (
	"context"
	"log/slog"
	"os"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/assent-dev/assent/internal/version"
	"github.com/assent-dev/assent/services/judge"
)

// judgesFile is a judges' file that has been read, and where its keys come from.
type judgesFile struct {
	file judge.File
}

// readJudges reads and checks a judges' file; nil for none.
func readJudges(path string) (*judgesFile, error) {
	if path == "" {
		return nil, nil
	}
	f, err := judge.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return &judgesFile{file: f}, nil
}

func judgeService(node string, j *judgesFile, metrics prometheus.Registerer, log *slog.Logger) service {
	return service{name: "judge", run: func(ctx context.Context, nc *nats.Conn, ready func()) error {
		s, err := judge.New(judge.Deps{NC: nc, Node: node, File: j.file, Env: os.LookupEnv, Log: log, Version: version.Version, Ready: ready, Metrics: metrics})
		if err != nil {
			return err
		}
		return s.Run(ctx)
	}}
}
