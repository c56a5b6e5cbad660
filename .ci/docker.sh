#!/usr/bin/env bash
# Makes sure that a Docker engine and docker-compose answer, for the tests that
# need them. Safe to run again. On Debian, as root, it installs and starts what
# is missing; elsewhere it says what is.
set -euo pipefail

log=${TMPDIR:-/tmp}/assent-dockerd.log

fail() {
  printf '.ci/docker.sh: %s\n' "$*" >&2
  if [[ -s $log ]]; then printf 'the end of %s:\n' "$log" >&2; tail -n 25 "$log" >&2; fi
  exit 1
}

answers() { docker info >/dev/null 2>&1; }

compose() { command -v docker-compose >/dev/null || docker compose version >/dev/null 2>&1; }

install_missing() {
  if command -v docker >/dev/null && compose && { answers || command -v dockerd >/dev/null; }; then return; fi
  [[ $(id -u) == 0 ]] || fail "Docker or docker-compose is missing, and only root can install it"
  command -v apt-get >/dev/null || fail "Docker or docker-compose is missing: install both"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq || fail "apt-get update failed"
  apt-get install -y -qq --no-install-recommends docker.io docker-compose iptables >"$log" 2>&1 || fail "apt-get install docker.io docker-compose failed"
}

# start runs the engine with the given arguments, and waits until it answers.
start() {
  setsid --fork dockerd "$@" >"$log" 2>&1 </dev/null
  local i
  for ((i = 0; i < 120; i++)); do
    if answers; then return 0; fi
    sleep 0.5
    # It ends by itself when it cannot work here.
    if ((i > 4)) && ! pgrep -x dockerd >/dev/null; then return 1; fi
  done
  return 1
}

install_missing
if ! answers; then
  [[ $(id -u) == 0 ]] || fail "the Docker engine does not answer, and only root can start it"
  # Where a layered file system cannot be had, plain copies do.
  start || start --storage-driver=vfs || fail "dockerd does not start"
fi
compose || fail "docker-compose is missing: install it"
docker version --format 'docker {{.Server.Version}}, storage driver ready'
