#!/usr/bin/env bash
# Installs the packages of the distribution that dtrain needs.
#   packaging/install-deps.sh [build|test|all]...      (default: build)
#   build  to compile dtrain and make the relocatable bundle
#   test   build, and what tests/run.sh needs
#   all    test, and what tests/run.sh --all needs
# Works on Debian 12 and newer, Ubuntu 24.04 and newer (apt), and Fedora (dnf). You can run it again: it installs missing
# packages only.
set -euo pipefail

# group | apt name | dnf name ('-' where the distribution has none or always installs it)
packages='
build|g++|gcc-c++
build|-|glibc-static
build|-|libstdc++-static
build|cmake|cmake
build|ninja-build|ninja-build
build|ccache|ccache
build|pkg-config|pkgconf-pkg-config
build|git|git
build|patchelf|patchelf
build|zstd|zstd
build|libdnnl-dev|onednn-devel
build|libcli11-dev|cli11-devel
build|libtomlplusplus-dev|tomlplusplus-devel
build|libasio-dev|asio-devel
build|libgloo-dev|gloo-devel
build|libfmt-dev|fmt-devel
build|nlohmann-json3-dev|json-devel
build|libcurl4-openssl-dev|libcurl-devel
build|libssl-dev|openssl-devel
build|libipsec-mb-dev|intel-ipsec-mb-devel
build|libssh-dev|libssh-devel
build|libpugixml-dev|pugixml-devel
build|libzstd-dev|libzstd-devel
build|libxxhash-dev|xxhash-devel
build|zlib1g-dev|zlib-devel
build|libspng-dev|libspng-devel
build|libwebp-dev|libwebp-devel
build|libfreetype-dev|freetype-devel
build|libjpeg-dev|libjpeg-turbo-devel
build|libgtest-dev|gtest-devel
test|openssh-server|openssh-server
test|openssh-client|openssh-clients
test|bsdutils|util-linux-script
test|python3|python3
test|python3-venv|-
test|python3-numpy|python3-numpy
test|python3-torch|python3-torch
test|iproute2|iproute
test|curl|curl
test|clang|clang
test|clang-format|clang-tools-extra
test|clang-tidy|clang-tools-extra
test|shellcheck|ShellCheck
test|codespell|codespell
test|mandoc|-
test|zsh|zsh
test|fish|fish
test|tmux|tmux
test|chromium|chromium
test|chromium-driver|chromedriver
test|lintian|-
test|rpm|rpm-build
test|rpmlint|rpmlint
test|skopeo|skopeo
test|umoci|umoci
test|python3-yaml|python3-pyyaml
test|faketime|libfaketime
test|sshfs|fuse-sshfs
test|openmpi-bin|openmpi
test|mpich|mpich
test|slurmctld|slurm-slurmctld
test|slurmd|slurm-slurmd
test|slurm-client|slurm
test|slurm-wlm-basic-plugins|-
test|munge|munge
test|gridengine-master|-
test|gridengine-exec|-
test|gridengine-client|-
all|libclang-rt-dev|compiler-rt
all|libomp-dev|libomp-devel
all|debootstrap|debootstrap
all|qemu-system-x86|qemu-system-x86
all|seabios|-
all|busybox-static|-
all|cpio|cpio
all|kmod|kmod
all|nfs-kernel-server|nfs-utils
'

main() {
  local groups=" ${*:-build} " wanted
  case "$groups" in *" all "*) groups+=" test build " ;; *" test "*) groups+=" build " ;; esac
  for group in $groups; do
    case "$group" in build | test | all) ;; *) fail "unknown group '$group': use build, test or all" 2 ;; esac
  done
  if command -v apt-get >/dev/null; then
    mapfile -t wanted < <(names "$groups" 2)
    install_apt "${wanted[@]}"
  elif command -v dnf >/dev/null; then
    mapfile -t wanted < <(names "$groups" 3)
    install_dnf "${wanted[@]}"
  else
    fail "found neither apt-get nor dnf; install the packages listed at the top of ${BASH_SOURCE[0]}" 1
  fi
}

names() {  # names GROUPS COLUMN: the package names of these groups, one a line
  local row
  for row in $packages; do
    case "$1" in *" ${row%%|*} "*) cut -d'|' -f"$2" <<<"$row" ;; esac
  done | grep -vx -e - || true
}

install_apt() {
  local missing=() known=() name
  for name in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing+=("$name")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  as_root retry apt-get update -qq
  for name in "${missing[@]}"; do
    if apt-cache show "$name" >/dev/null 2>&1; then known+=("$name"); else note_absent "$name"; fi
  done
  [ ${#known[@]} -gt 0 ] || return 0
  note "installing ${known[*]}"
  case " ${known[*]} " in *" gridengine-"*) answer_grid_engine ;; esac
  as_root retry env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    -o Acquire::Retries=3 -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 "${known[@]}"
}

answer_grid_engine() {  # its packages ask for the host name of a master; the hosts of the tests are h1, h2, ...
  local part
  command -v debconf-set-selections >/dev/null || return 0
  for part in common client master exec; do
    printf 'gridengine-%s shared/%s\n' $part 'gridengineconfig boolean true' \
      $part 'gridenginecell string default' $part 'gridenginemaster string h1'
  done | as_root_with_input debconf-set-selections
}

install_dnf() {
  local missing=() known=() name
  for name in "$@"; do rpm -q --quiet --whatprovides "$name" || missing+=("$name"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  as_root retry dnf -q makecache
  for name in "${missing[@]}"; do
    if dnf_has "$name"; then known+=("$name"); else note_absent "$name"; fi
  done
  [ ${#known[@]} -gt 0 ] || return 0
  note "installing ${known[*]}"
  as_root dnf install -y -q --setopt=install_weak_deps=False --skip-broken "${known[@]}"
}

dnf_has() { [ -n "$(dnf -q repoquery --whatprovides "$1" 2>/dev/null)" ]; }

as_root_with_input() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

as_root() {  # as_root [retry] COMMAND...: runs it as root and shows its output only if it fails
  local tries=1 log sudo=()
  if [ "$1" = retry ]; then tries=3; shift; fi
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || fail "you are not root and sudo is missing; ask an administrator to run: $*" 1
    sudo=(sudo)
  fi
  log=$(mktemp)
  until "${sudo[@]}" "$@" >"$log" 2>&1 </dev/null; do
    tries=$((tries - 1))
    if [ $tries -le 0 ]; then tail -n 30 "$log" >&2; rm -f "$log"; fail "failed: $*" 1; fi
    sleep 10
  done
  rm -f "$log"
}

note_absent() { note "skipping $1: this distribution does not have it"; }
note() { echo "install-deps: $*" >&2; }
fail() { note "$1"; exit "$2"; }

main "$@"
