package node

import (
	"context"
	"fmt"
	"log/slog"
)

// serverLog hands the server's log to slog. The server's notices are of use
// only when something is wrong, so they are debug here.
type serverLog struct {
	log *slog.Logger
	// fatal takes the first reason why the server gives up. The server goes on
	// calling after it, so it never blocks.
	fatal chan<- string
}

func (l *serverLog) Noticef(format string, v ...any) { l.at(slog.LevelDebug, format, v) }
func (l *serverLog) Warnf(format string, v ...any)   { l.at(slog.LevelWarn, format, v) }
func (l *serverLog) Errorf(format string, v ...any)  { l.at(slog.LevelWarn, format, v) }
func (l *serverLog) Debugf(format string, v ...any)  { l.at(slog.LevelDebug-4, format, v) }
func (l *serverLog) Tracef(format string, v ...any)  { l.at(slog.LevelDebug-4, format, v) }

func (l *serverLog) Fatalf(format string, v ...any) {
	l.at(slog.LevelError, format, v)
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default:
	}
}

func (l *serverLog) at(level slog.Level, format string, v []any) {
	ctx := context.Background()
	if l.log.Enabled(ctx, level) {
		l.log.Log(ctx, level, "nats-server: "+fmt.Sprintf(format, v...))
	}
}
