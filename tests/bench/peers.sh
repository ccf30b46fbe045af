# For the comparisons: virtual environments of the peers, made once below build/peers (several GB from PyPI).
# shellcheck shell=bash disable=SC2034  # the scripts that source this use them
set -euo pipefail
peers=build/peers
make_peer() {  # NAME PIP_ARGUMENTS...
  local name=$1
  shift
  [ -e "$peers/$name/.ready" ] && return
  echo "installing $name into $peers/$name" >&2
  mkdir -p "$peers"
  /usr/bin/python3 -m venv "$peers/$name"
  "$peers/$name/bin/pip" install --quiet "$@"
  touch "$peers/$name/.ready"
}
