#!/bin/sh
# Prints an environment file for docker compose with new random secrets, or writes it to the file that is named, which must
# not exist yet:
#   sh deploy/make-env.sh .env
set -eu

random_hex() { od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n'; }
random_base64() { head -c 32 /dev/urandom | base64 | tr -d '\n'; }

print_env() {
  cat <<EOF
# Secrets of this installation. Keep a copy of SECRET_KEY in your secret store; docs/operating/ describes all of them.
SERVICE_TOKEN=$(random_hex)
SECRET_KEY=$(random_base64)
# Passwords in Postgres: of the superuser, of the cores' role, and of the gateways' role.
POSTGRES_PASSWORD=$(random_hex)
CORE_POSTGRES_PASSWORD=$(random_hex)
GATEWAY_POSTGRES_PASSWORD=$(random_hex)
EOF
}

case $# in
0) print_env ;;
1)
  umask 077
  if ! (set -C && : > "$1") 2>/dev/null; then
    echo "$1 exists or can't be written; nothing was changed." >&2
    exit 1
  fi
  print_env > "$1"
  ;;
*)
  echo 'usage: sh deploy/make-env.sh [FILE]' >&2
  exit 2
  ;;
esac
