#!/usr/bin/env bash
# Takes the CPU profile that tailcast is built with, cmd/tailcast/default.pgo:
# of one gateway while streams are served, filtered, cut and resumed, and all
# come back at once. Needs Go, curl, two processors, a minute, and five ports
# from PORT (20700) on.
set -euo pipefail
cd "$(dirname "$0")/.."
port=${PORT:-20700}
dir=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
at() { echo "127.0.0.1:$((port + $1))"; }

go build -o "$dir/tailcast" ./cmd/tailcast
"$dir/tailcast" demo --quiet --listen "$(at 0)" --admin "$(at 1)" --broker-listen "$(at 2)" >"$dir/demo.log" 2>&1 &
pids+=($!)
until curl -sf "http://$(at 1)/readyz" >/dev/null; do sleep 0.2; done
cat >"$dir/serve.yaml" <<'YAML'
routes:
  - {path: /events, topic: bench}
  - {path: "/users/{user}", topic: bench, filter: [{key: "{user}"}]}
YAML
"$dir/tailcast" serve --config "$dir/serve.yaml" --kafka-brokers "$(at 2)" --log-bytes 16MiB \
  --listen "$(at 3)" --admin "$(at 4)" 2>"$dir/serve.log" &
pids+=($!)
until curl -sf "http://$(at 4)/healthz" >/dev/null; do sleep 0.2; done

# profile NAME SECONDS SCENARIO FLAGS... profiles the gateway under a scenario
# that takes longer, beginning when its streams are open.
profile() {
  local name=$1 seconds=$2 scenario=$3 path=$4
  shift 4
  "$dir/tailcast" bench "$scenario" --url "http://$(at 3)$path" --kafka-brokers "$(at 2)" --partitions 3 --floor=false \
    --server-cpu "" --client-cpu "" "$@" >"$dir/$name.log" 2>&1 &
  local bench=$!
  curl -sf -o "$dir/$name.pprof" "http://$(at 4)/debug/pprof/profile?seconds=$seconds"
  wait $bench || { tail -5 "$dir/$name.log"; return 1; }
}

profile fanout 12 fanout /events --streams 2000 --rate 40 --warm 1s --for 9s
profile keyed 12 keyed '/users/{user}' --streams 2000 --rate 8000 --warm 1s --for 9s
profile churn 12 soak /events --streams 1000 --rate 20 --churn 1s --warm 1s --for 9s
profile storm 6 storm /events --streams 4000 --behind 200
go tool pprof -proto -output cmd/tailcast/default.pgo "$dir"/*.pprof >"$dir/pprof.log" 2>&1 || { cat "$dir/pprof.log"; exit 1; }
ls -l cmd/tailcast/default.pgo
