#!/usr/bin/env bash
# What the tests of this folder share; to be sourced. test_case counts in $passed and $failed. Bare Debian roots need
# debootstrap and root.
set -euo pipefail

roots=${DTRAIN_ROOTS:-${TMPDIR:-/tmp}/dtrain-roots-$(id -u)}

test_case() {  # test_case SENTENCE COMMAND...
  local output sentence=$1
  shift
  if output=$("$@" 2>&1); then passed=$((passed + 1)); echo "ok   $sentence"; else
    failed=$((failed + 1))
    tail -n 20 <<<"$output"
    echo "FAIL $sentence"
  fi
}

# can_train_on_gpus BUILD FILE: a program that was packaged from BUILD has its part for GPUs, where BUILD found nvcc.
can_train_on_gpus() {
  grep -q '^DTRAIN_NVCC:.*-NOTFOUND' "$1/CMakeCache.txt" || ! grep -q 'was built without CUDA' "$2"
}

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
# /proc, /sys, /dev and what $binds lists (`FROM TO` lines) are mounted in a mount namespace of its own and vanish with it.
in_root() {
  local folder=$1 variables
  shift
  mapfile -t variables < <(network_variables)
  unshare --mount --pid --fork --kill-child bash -euc 'enter_root "$@"' - "$folder" "${binds:-}" HOME=/root TERM=dumb \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${variables[@]}" "$@" </dev/null
}

# Turned to, not only changed to: a program in a chroot could make no namespaces, which the tests do.
enter_root() {  # enter_root DIR BINDS [NAME=VALUE...] COMMAND...
  local folder=$1 binds=$2 from to
  shift 2
  mount --make-rprivate /
  mount --bind "$folder" "$folder"
  mkdir -p "$folder/proc" "$folder/sys" "$folder/dev"
  mount -t proc proc "$folder/proc"
  mount -t sysfs sysfs "$folder/sys"
  make_devices "$folder/dev"
  while read -r from to; do
    [ -n "$from" ] || continue
    mkdir -p "$folder$to"
    mount --bind "$from" "$folder$to"
  done <<<"$binds"
  cd "$folder"
  pivot_root . mnt
  umount -l /mnt
  exec /usr/bin/env -i "$@"
}

make_devices() {  # make_devices DIR: what a program may expect there; nothing done to it touches this machine's
  local folder=$1 name major minor
  mount -t tmpfs -o mode=755 dev "$folder"
  mkdir "$folder/pts" "$folder/shm"
  mount -t devpts -o newinstance,mode=620,ptmxmode=666,gid=5 devpts "$folder/pts"
  mount -t tmpfs -o mode=1777 shm "$folder/shm"
  while read -r name major minor; do mknod -m 666 "$folder/$name" c "$major" "$minor"; done <<END
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
fuse 10 229
END
  ln -s pts/ptmx "$folder/ptmx"
  ln -s /proc/self/fd "$folder/fd"
  for name in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${name%:*}" "$folder/${name#*:}"; done
}
export -f enter_root make_devices
