// Command tailcast tails Kafka topics and casts every record to browsers as
// Server-Sent Events.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"tailcast/config"
)

const usage = `tailcast tails Kafka topics and casts every record to browsers as Server-Sent Events.

  tailcast serve --kafka-brokers HOST:PORT --route /events=TOPIC
  tailcast demo      everything in one process: broker, sample records, gateway, page
  tailcast check     read the configuration of serve, ask the brokers, say what would be served
  tailcast bench     measure: streams, latency, CPU and memory, beside what the kernel takes
  tailcast version

tailcast COMMAND --help lists the flags of serve, demo, check and bench.
`

func main() { os.Exit(run(os.Args[1:], os.Environ(), os.Stdout, os.Stderr)) }

// run is main with its surroundings given. It returns the exit code: 0 done, 1
// failed, 2 a mistake in the command line or the configuration.
func run(args, env []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	command := args[0]
	switch command {
	case "help", "-h", "--help":
		fmt.Fprint(stdout, usage)
		return 0
	case "version", "--version":
		if len(args) > 1 {
			fmt.Fprintf(stderr, "tailcast: unexpected argument %.80q\n", args[1])
			return 2
		}
		fmt.Fprintf(stdout, "tailcast %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), endings()...)
	defer stop()
	switch command {
	case benchmark:
		return benchCommand(ctx, args[1:], stdout, stderr)
	case config.Serve, config.Demonstrate, config.Check:
	default:
		fmt.Fprintf(stderr, "tailcast: %.80q is not a command (use serve, demo, check, bench, version or help)\n", command)
		return 2
	}
	cfg, err := config.Load(command, args[1:], env)
	if errors.Is(err, config.ErrHelp) {
		fmt.Fprint(stdout, config.Help(command))
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "tailcast: %v\n", err)
		return 2
	}
	switch command {
	case config.Demonstrate:
		err = demo(ctx, cfg, stdout, stderr)
	case config.Check:
		err = check(ctx, cfg, stdout)
	default:
		err = serve(ctx, cfg, stderr)
	}
	if err != nil {
		fmt.Fprintf(stderr, "tailcast: %v\n", err)
		if errors.As(err, new(mistake)) {
			return 2
		}
		return 1
	}
	return 0
}

// endings are the signals that end a command. SIGHUP is one: it comes when a
// terminal closes, and there is nothing to be read anew; under nohup it is none.
func endings() []os.Signal {
	all := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// version is the module's version as the Go tool recorded it; builds from a
// checkout have the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 && v == "devel" {
			v = "devel+" + s.Value[:12]
		}
	}
	return v
}
