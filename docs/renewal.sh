#!/usr/bin/env bash
# The life of a guarded stream whose tokens live for 30 seconds, by curl and TLS:
# its client is asked for the next token after about 20 seconds, answers, and the
# stream outlives the first token; it does not answer again, and the stream ends
# with the second. The issuer's key comes from a URL.
#
#   make build && docs/renewal.sh
#
# It needs bash, curl, openssl and python3, and takes a minute. Kafka and the
# sample records are those of tailcast demo. All files are in a directory that is
# removed at the end.
set -euo pipefail

tailcast=${TAILCAST:-bin/tailcast}
port=${PORT:-7143}               # of the streams, by TLS
issuer_port=${ISSUER_PORT:-7180} # of the issuer's keys
admin_port=${ADMIN_PORT:-9090}
broker_port=${BROKER_PORT:-19092}

dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$dir"' EXIT

base64url() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }

# The issuer: an RSA key, and a page that publishes its public half.
mkdir "$dir/issuer"
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out "$dir/issuer.key" 2>"$dir/openssl.log"
modulus=$(openssl rsa -in "$dir/issuer.key" -noout -modulus | sed 's/^Modulus=//; s/../\\x&/g')
printf '{"keys":[{"kty":"RSA","kid":"k1","alg":"RS256","use":"sig","n":"%s","e":"AQAB"}]}' \
  "$(printf '%b' "$modulus" | base64url)" >"$dir/issuer/jwks.json"
python3 -m http.server "$issuer_port" --bind 127.0.0.1 --directory "$dir/issuer" >"$dir/issuer.log" 2>&1 &

# token makes one that lives for 30 seconds. It has no iat.
token() {
  local head payload
  head=$(printf '{"alg":"RS256","typ":"JWT","kid":"k1"}' | base64url)
  payload=$(printf '{"iss":"https://issuer.test","aud":"streams","sub":"ada","exp":%d,"scope":"read:events"}' $(($(date +%s) + 30)) | base64url)
  printf '%s.%s.%s' "$head" "$payload" "$(printf '%s.%s' "$head" "$payload" | openssl dgst -sha256 -sign "$dir/issuer.key" -binary | base64url)"
}

# The gateway, with a record a second.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost \
  -addext subjectAltName=DNS:localhost -keyout "$dir/tls.key" -out "$dir/tls.pem" 2>>"$dir/openssl.log"
cat >"$dir/tailcast.yaml" <<YAML
listen: "off"
listen-tls: 127.0.0.1:$port
tls-cert: $dir/tls.pem
tls-key: $dir/tls.key
guard:
  issuer: https://issuer.test
  audience: streams
  roles: ["read:events"]
  jwks: http://127.0.0.1:$issuer_port/jwks.json
routes:
  - {path: /events, topic: events}
YAML
"$tailcast" demo --config "$dir/tailcast.yaml" --rate 1 --admin "127.0.0.1:$admin_port" --broker-listen "127.0.0.1:$broker_port" \
  >"$dir/tailcast.log" 2>&1 &
gateway=$!
until curl -sf -o "$dir/ready" "http://127.0.0.1:$admin_port/readyz"; do
  kill -0 "$gateway" 2>/dev/null || { cat "$dir/tailcast.log"; exit 1; }
  sleep 0.2
done

# say shows a line of the stream, or about it, and when it came.
begun=$SECONDS
say() { printf '%3d s  %s\n' $((SECONDS - begun)) "$1"; }

url=https://localhost:$port/events
records=0 event='' answered=
while IFS= read -r line; do
  line=${line%$'\r'}
  case $line in
  HTTP/*) say "$line" ;;
  event:*) event=${line#event: } && say "$line" ;;
  '') event= ;;
  data:*)
    if [ "$event" != challenge ]; then
      [ $((records++ % 5)) != 0 ] || say "$line"
      continue
    fi
    say "$line"
    [ -z "$answered" ] || { say "(no answer this time)" && continue; }
    challenge=$(sed -n 's/.*"x-challenge":"\([^"]*\)".*/\1/p' <<<"$line")
    answered=$(curl -sS --cacert "$dir/tls.pem" -o "$dir/answer" -w '%{http_code}' -X POST "$url" \
      -H 'Content-Type: application/x-challenge-response' -H "X-Challenge: $challenge" -H "Authorization: Bearer $(token)")
    say "(a new token is posted: $answered)"
    ;;
  esac
done < <(curl -sSNi --http2 --cacert "$dir/tls.pem" "$url?access_token=$(token)")
say "the stream has ended, after $records records (each fifth is shown)"
