#!/usr/bin/env bash
# Bare Debian roots for the tests of this folder; to be sourced. Needs debootstrap and the right to chroot.
set -euo pipefail

roots=${DTRAIN_ROOTS:-${TMPDIR:-/tmp}/dtrain-roots-$(id -u)}

# make_root SUITE DIR: a new minimal root; the downloaded base is kept in $roots.
make_root() {
  local suite=$1 folder=$2 base=$roots/$1.tar
  mkdir -p "$roots"
  if [ ! -f "$base" ]; then
    local fresh
    fresh=$(mktemp -d "$roots/$suite.XXXXXX")
    if ! debootstrap --variant=minbase --include=ca-certificates "$suite" "$fresh" "$(mirror)" >"$roots/$suite.log" 2>&1; then
      tail -n 20 "$roots/$suite.log" >&2
      return 1
    fi
    chroot "$fresh" apt-get clean
    tar -C "$fresh" --exclude='./dev/*' -cf "$base.part" .
    mv "$base.part" "$base"
    rm -rf "$fresh"
  fi
  mkdir -p "$folder"
  tar -C "$folder" -xpf "$base"
  chmod 755 "$folder"  # as / is: packages run programs as users of their own
}

# The archive this machine installs from: no host is named here.
mirror() {
  apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(RELEASE)' 2>/dev/null |
    awk '$1 == "Debian" && $2 !~ /security/ { print $2; exit }'
}

# give_network DIR SUITE: what this machine needs to reach its registries, it needs in the root too.
give_network() {
  local folder=$1 suite=$2 file
  apt-config dump | grep '^Acquire::' | grep -v 'IndexTargets\|Acquire::Languages\|CompressionTypes' \
    >"$folder/etc/apt/apt.conf.d/50machine" || true
  apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)' |
    awk -v suite="$suite" '$1 == "Debian" && $3 ~ "^" suite { print "deb", $2, $3, $4 }' | sort -u >"$folder/etc/apt/sources.list"
  for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt "$HOME/.config/pip/pip.conf"; do
    if [ -f "$file" ]; then
      mkdir -p "$folder$(dirname "$file")"
      cp --dereference "$file" "$folder$file"
    fi
  done
}

# The variables that carry proxies and certificates, as NAME=VALUE lines for env.
network_variables() {
  env | grep -iE '^([a-z]+_proxy|[A-Z0-9_]*(CA_BUNDLE|CERT|CERTS|CERT_FILE|CERT_DIR|CAINFO|CA_CERTS)|PIP_[A-Z_]+)=' || true
}

# in_root DIR COMMAND...: runs it in the root, with nothing of this machine's environment but the network variables.
# /proc, /dev and what $binds lists (`FROM TO` lines) are mounted in a mount namespace of its own and vanish with it.
in_root() {
  local folder=$1 variables
  shift
  mapfile -t variables < <(network_variables)
  unshare --mount --pid --fork --kill-child bash -euc '
    folder=$1 binds=$2; shift 2
    mount --make-rprivate /
    mkdir -p "$folder/proc" "$folder/dev"
    mount -t proc proc "$folder/proc"
    mount --rbind /dev "$folder/dev"
    while read -r from to; do
      [ -n "$from" ] || continue
      mkdir -p "$folder$to"; mount --bind "$from" "$folder$to"
    done <<<"$binds"
    exec chroot "$folder" /usr/bin/env -i "$@"
  ' in_root "$folder" "${binds:-}" HOME=/root TERM=dumb \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${variables[@]}" "$@" </dev/null
}
