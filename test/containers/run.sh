#!/usr/bin/env bash
# npm run test:containers: a journey through the Dockerfile and the compose files, in a Docker engine of its own, which needs
# no image registry. The engine, its bridges and its published ports are in a network namespace, so that the machine's own
# network, iptables and ports stay as they are. What takes long to make is kept in SIGNPOST_CONTAINERS_CACHE (3.2 GB).
#
# run.sh      engine, cache, clean-up
# images.sh   stand-ins for the base images, under their real names
# journey.test.ts   what is tested
set -euo pipefail
cd "$(dirname "$0")/../.."
project=$PWD
cache=${SIGNPOST_CONTAINERS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/signpost-containers}

cannot() {
  echo "The containers can't be tested here: $1" >&2
  exit 1
}
[ "$(uname -s)" = Linux ] || cannot 'a Docker engine in a network namespace needs Linux.'
[ "$(id -u)" = 0 ] || cannot 'starting a Docker engine needs root.'
missing=()
for program in dockerd:docker.io tini:tini iptables:iptables ip:iproute2 slirp4netns:slirp4netns debootstrap:debootstrap \
  mvn:maven caddy:caddy curl:curl; do
  command -v "${program%:*}" >/dev/null || missing+=("${program#*:}")
done
[ ${#missing[@]} -eq 0 ] || cannot "programs are missing: apt-get install --no-install-recommends ${missing[*]}"
mkdir -p "$cache"
exec 9>"$cache/lock"
flock --nonblock 9 || cannot "another run uses $cache."

work=$(mktemp -d "${TMPDIR:-/tmp}/signpost-containers-XXXXXX")
namespace=$(basename "$work")
export DOCKER_HOST=unix://$work/docker.sock DOCKER_CONFIG=$work/config
engine_pid='' slirp_pid=''

# Stops one of this script's processes; kills it if it takes longer than 60 s.
stop() {
  [ -n "$1" ] || return 0
  kill "$1" 2>/dev/null || true
  for _ in $(seq 600); do kill -0 "$1" 2>/dev/null || break; sleep 0.1; done
  kill -9 "$1" 2>/dev/null || true
  wait "$1" 2>/dev/null || true
}

# Copies the logs of the engine and of its containers to where they stay.
keep_logs() {
  rm -rf "$cache/failed"
  mkdir -p "$cache/failed"
  cp "$work"/*.log "$cache/failed/"
  for name in $(docker ps -a --format '{{.Names}}' 2>/dev/null); do
    docker logs --timestamps "$name" >"$cache/failed/$name.log" 2>&1
  done
  echo "The logs are in $cache/failed." >&2
}

# Removes the containers, volumes and networks of a run.
remove_containers() {
  containers=$(docker ps -aq 2>/dev/null) && [ -n "$containers" ] && docker rm -f -v $containers >/dev/null
  volumes=$(docker volume ls -q 2>/dev/null) && [ -n "$volumes" ] && docker volume rm -f $volumes >/dev/null
  docker network prune -f >/dev/null 2>&1
}

clean_up() {
  result=$?
  trap '' INT TERM
  set +e
  if [ -n "$engine_pid" ]; then
    [ $result = 0 ] || keep_logs
    remove_containers
    # What former versions of the project built.
    docker image prune -f >/dev/null 2>&1
    docker builder prune -f --filter until=168h >/dev/null 2>&1
  fi
  stop "$engine_pid"
  stop "$slirp_pid"
  ip netns delete "$namespace" 2>/dev/null
  # Mounts that an engine leaves behind if it had to be killed.
  awk -v prefix="$work/" 'index($2, prefix) == 1 { print $2 }' /proc/mounts | sort -r | xargs -r -n1 umount
  rm -rf "$work"
  exit $result
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say() { printf '%3d s  %s\n' "$SECONDS" "$1"; }

mkdir -p "$DOCKER_CONFIG/cli-plugins"
ln -s "$cache/docker-compose" "$DOCKER_CONFIG/cli-plugins/docker-compose"

ip netns add "$namespace"
in_namespace() { nsenter --net="/run/netns/$namespace" "$@"; }
in_namespace ip link set lo up
# Builds reach the package registries through it.
slirp4netns --configure --mtu=1500 --disable-host-loopback --netns-type=path "/run/netns/$namespace" tap0 \
  >"$work/slirp.log" 2>&1 9>&- &
slirp_pid=$!
# `ip netns exec` would hide the cgroups, which the engine needs.
nsenter --net="/run/netns/$namespace" dockerd --data-root "$cache/docker" --exec-root "$work/exec" \
  --pidfile "$work/dockerd.pid" --host "$DOCKER_HOST" --storage-driver overlay2 --dns 10.0.2.3 \
  >"$work/dockerd.log" 2>&1 9>&- &
engine_pid=$!
for _ in $(seq 60); do docker info >/dev/null 2>&1 && break; sleep 1; done
docker info >/dev/null 2>&1 || { tail -5 "$work/dockerd.log" >&2; cannot 'its Docker engine does not start.'; }
# Those of a run that was killed: their database would still have the password of that run.
remove_containers || true
say 'the engine runs'

bash test/containers/images.sh "$cache"
say 'the base images are there'

# The journey writes an environment file, so it runs in a copy, without files that were deleted and are not yet committed.
mkdir "$work/checkout"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$work/checkout" 2>/dev/null || true
CONTAINERS_CHECKOUT=$work/checkout in_namespace "$project/node_modules/.bin/node" node_modules/vitest/vitest.mjs run \
  --config test/containers/vitest.config.ts "$@"
say 'the journey is over'
