# A real sshd for a suite of tests/cli: `start_sshd [LINE...]` (more lines for sshd_config) sets PORT and writes keys to sshd/; it
# listens on all of 127.0.0.0/8, so 127.0.1.1, 127.0.1.2, ... are as many hosts. Its shells have an empty home. It ends with the
# suite. Where there is no sshd the suite is skipped, loudly.
# shellcheck shell=bash disable=SC2154
set -uo pipefail
SSHD=/usr/sbin/sshd
if ! [ -x $SSHD ]; then
  echo "SKIPPED LOUDLY $suite: install openssh-server"
  exit 0
fi

free_port() { /usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])'; }

start_sshd() {
  mkdir -p sshd/home "$HOME/.ssh"
  [ "$(id -u)" != 0 ] || mkdir -p /run/sshd
  ssh-keygen -q -t ed25519 -N '' -f sshd/host
  ssh-keygen -q -t ed25519 -N '' -f "$HOME/.ssh/id_ed25519"
  PORT=$(free_port)
  cat >sshd/config <<CONFIG
Port $PORT
ListenAddress 0.0.0.0
HostKey $PWD/sshd/host
AuthorizedKeysFile $HOME/.ssh/id_ed25519.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
Subsystem sftp internal-sftp
SetEnv HOME=$PWD/sshd/home
CONFIG
  printf '%s\n' "$@" >>sshd/config
  $SSHD -D -f "$PWD/sshd/config" -E "$PWD/sshd/log" &
  sshd_process=$!
  trap 'stop_sshd; rm -rf "$scratch"' EXIT
  for _ in $(seq 1200); do
    (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null && return
    sleep 0.05
  done
  cat sshd/log
  exit 1
}

stop_sshd() { kill "$sshd_process" 2>/dev/null; }

hosts() {  # hosts COUNT: a host file's lines
  for n in $(seq "$1"); do echo "127.0.1.$n:$PORT"; done
}
