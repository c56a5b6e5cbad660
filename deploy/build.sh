#!/usr/bin/env bash
# Builds dist/ and, unless told --no-image, the image (ASSENT_IMAGE, default
# assent:dev). Needs Go; the image needs Docker. Nothing is pulled.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { printf 'deploy/build.sh: %s\n' "$*" >&2; exit 1; }

# The certificates that a judge needs to know its model's server. The image has
# no package manager that could bring any.
certificates() {
  local f
  for f in "${SSL_CERT_FILE:-}" /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem; do
    if [[ -n $f && -r $f ]]; then printf '%s\n' "$f"; return; fi
  done
  fail "no file of trusted certificates found: name one in SSL_CERT_FILE"
}

mkdir -p dist
go_build() { CGO_ENABLED=0 GOOS=linux go build -trimpath -ldflags '-s -w' -o "$@"; }
go_build dist/assent .
go_build dist/nats-server github.com/nats-io/nats-server/v2
install -m 0644 "$(certificates)" dist/ca-certificates.crt
rm -rf dist/state
install -d -m 0700 dist/state/{store,creds,config,jetstream,review}

if [[ ${1:-} != --no-image ]]; then
  command -v docker >/dev/null || fail "docker is missing: install it, or build only dist/ with --no-image"
  DOCKER_BUILDKIT=0 docker build --quiet --tag "${ASSENT_IMAGE:-assent:dev}" .
fi
