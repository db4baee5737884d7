package auth

import (
	"context"
	"testing"
)

func runUntilEnd(t testing.TB, n *Node) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}
