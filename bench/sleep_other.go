//go:build !linux

package bench

import "time"

func sleepUntil(t time.Time) { time.Sleep(time.Until(t)) }
