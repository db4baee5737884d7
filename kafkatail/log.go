package kafkatail

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"
)

// libraryLog shows franz-go's log to who asks for debug output. What matters to
// an operator we log ourselves, once per change; the library repeats itself.
type libraryLog struct{ log *slog.Logger }

func (l libraryLog) Level() kgo.LogLevel {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		return kgo.LogLevelInfo
	}
	return kgo.LogLevelNone
}

func (l libraryLog) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	attrs := make([]slog.Attr, 0, len(keyvals)/2+2)
	attrs = append(attrs, slog.String("severity", level.String()), slog.String("message", msg))
	for i := 0; i+1 < len(keyvals); i += 2 {
		attrs = append(attrs, slog.Any(fmt.Sprint(keyvals[i]), keyvals[i+1]))
	}
	l.log.LogAttrs(context.Background(), slog.LevelDebug, "franz-go", attrs...)
}
