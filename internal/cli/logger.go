package cli

import (
	"log/slog"
	"time"

	"github.com/lmittmann/tint"
	"github.com/spf13/pflag"
)

// logging are the flags of a long-running command's log.
type logging struct {
	verbose bool
	quiet   bool
}

func (l *logging) flags(f *pflag.FlagSet) {
	f.BoolVarP(&l.verbose, "verbose", "v", false, "log what happens in detail")
	f.BoolVarP(&l.quiet, "quiet", "q", false, "log warnings and errors only")
}

// logger logs to stderr: coloured text on a terminal, JSON lines elsewhere.
func (l *logging) logger(env *Env) *slog.Logger {
	level := slog.LevelInfo
	switch {
	case l.verbose:
		level = slog.LevelDebug
	case l.quiet:
		level = slog.LevelWarn
	}
	if isTerminal(env.Stderr) && env.Getenv("NO_COLOR") == "" {
		return slog.New(tint.NewHandler(env.Stderr, &tint.Options{Level: level, TimeFormat: time.TimeOnly}))
	}
	return slog.New(slog.NewJSONHandler(env.Stderr, &slog.HandlerOptions{Level: level}))
}

// quietLog is for commands that tell a person what went wrong themselves.
func quietLog() *slog.Logger { return slog.New(slog.DiscardHandler) }
