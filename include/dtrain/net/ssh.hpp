// Commands and files on other machines, through libssh. Everything blocks, nothing longer than its deadline; a failure
// is a RemoteError that names the host, what was asked of it, why it failed, and in its hint the next thing to do.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>

namespace dtrain::net {

struct SshTarget {
  std::string host;    // a name, an alias of the configuration, or a numeric address (IPv6 without brackets)
  std::string user{};  // empty: the configuration's, else the caller's own
  int port = 0;        // 0: the configuration's, else 22
  // The name under which files of host keys know it, in place of its name or address; before the configuration's
  // HostKeyAlias. Empty: the configuration's.
  std::string host_key_alias{};
  friend bool operator==(const SshTarget&, const SshTarget&) = default;
};
// "user@host:port" with what the target says, "[v6]:port": what messages call it.
std::string to_string(const SshTarget& target);

// What happens to the key of a host that no file of host keys knows.
enum class NewHostKeys {
  refuse,                // unless the configuration has StrictHostKeyChecking accept-new or no
  accept_unless_strict,  // unless it has StrictHostKeyChecking yes
  accept,
};

struct SshOptions {
  // OpenSSH's client configuration, of the user and of the machine; empty or missing: none. Where an ssh client is
  // installed, it resolves them (`ssh -G`, with Match and Include); without one, Host and Include are followed and a
  // Match block is refused. Followed are HostName, User, Port, AddressFamily, IdentityFile, CertificateFile,
  // IdentitiesOnly, IdentityAgent, ProxyJump, ProxyCommand, HostKeyAlias, StrictHostKeyChecking, UserKnownHostsFile,
  // GlobalKnownHostsFile and the lists of algorithms. BindAddress, BindInterface, KnownHostsCommand, PKCS11Provider,
  // ProxyUseFdpass, RevokedHostKeys and VerifyHostKeyDNS are refused by name. Others (terminals, forwarding,
  // multiplexing, passwords, logging) mean nothing here.
  Path config, system_config{};
  // Host keys, in OpenSSH's format. The keys of new hosts are added to `known_hosts`; empty: to the first of the user's
  // files. A key that differs from the known ones of its host is always refused.
  Path known_hosts;
  std::vector<Path> user_known_hosts{};    // only read; UserKnownHostsFile takes their place, unless there are none
  std::vector<Path> global_known_hosts{};  // only read; GlobalKnownHostsFile takes their place, likewise
  NewHostKeys new_host_keys = NewHostKeys::refuse;
  // Private keys without a passphrase, tried in this order after the agent's and those of the configuration, each first
  // with its certificate KEY-cert.pub. Missing files are passed over.
  std::vector<Path> identities;
  // $SSH_AUTH_SOCK; empty: no agent. Its keys that are also named here or in the configuration are offered first; with
  // IdentitiesOnly, no others.
  std::string agent_socket;
  // For all of it: name, TCP, key exchange, proof of identity, each hop on the way, and the tries after an sshd that
  // turned the connection away before it said a word (MaxStartups).
  std::chrono::milliseconds connect_deadline{std::chrono::seconds(15)};
  // A machine that acknowledges nothing, or leaves a question about files unanswered, for so long is lost. Behind a
  // jump host or a ProxyCommand, one that runs a command has six times as long, as its sshd has to answer.
  std::chrono::milliseconds silence{std::chrono::seconds(10)};
  // Asked to stop, whatever is under way ends within 200 ms and throws Stopped; a command is ended on the host first.
  std::stop_token stop;
};
// What the OpenSSH client would use for the user with this home folder: configuration, known hosts, default keys.
SshOptions user_ssh_options(const Path& home, std::string agent_socket);
// Whether a login that takes this public key ("KIND BASE64 ...", a line of an id_*.pub) could succeed with what the
// options and the configuration for `target` name: the agent holds it, or the private key of a file that needs no
// passphrase belongs to it. Waits at most some seconds for the agent. Throws UsageError as SshSession::connect().
bool can_log_in_with(std::string_view public_key, const SshTarget& target, const SshOptions& options);
// A configuration that the user names stands alone, as with `ssh -F`.
void use_only(const Path& config, SshOptions& options);

struct SshCommand {
  // The program and its arguments arrive byte for byte (any byte but NUL), whatever is in them. The user's shell there
  // must be a POSIX one.
  std::vector<std::string> argv{};
  // In place of argv: text for the user's shell.
  std::string shell{};
  // NAME=value, exported before the program starts. They can be seen in the host's list of processes for a moment: a
  // secret belongs in `input`.
  std::vector<std::string> environment{};
  std::string folder{};  // to run in; empty: the user's home
  std::string input{};   // all of standard input; its end follows
  // Called on the caller's thread with pieces as they come, cut anywhere. What they throw ends the command and leaves
  // run(). Empty: thrown away.
  std::function<void(std::string_view)> on_output{}, on_error{};
  // The command is ended after that: SIGTERM, 2 s later SIGKILL, to its process group.
  std::optional<std::chrono::milliseconds> deadline{};
  // True: on_output gets only what the command writes, not what the user's shell prints before it (a .bashrc that
  // prints in every shell). run() then throws RemoteError, with the first line of that text, if the shell did not come
  // to the command.
  bool skip_login_text = false;
};

struct [[nodiscard]] SshExit {
  int code = 0;            // argument of exit(), when there is no signal
  std::string signal{};    // "KILL", "TERM", ...: the program was ended by it
  bool timed_out = false;  // the deadline passed; signal says what ended it; empty if that is unknown
  bool ok() const { return code == 0 && signal.empty() && !timed_out; }
};

// The one line for a POSIX shell that has it run the command; what run() sends. UsageError: argv is empty or its first
// word begins with '-', a NUL byte, or an environment name that no shell takes.
std::string shell_line(const SshCommand& command);
// The word as a POSIX shell must be given it, to be taken byte for byte.
std::string shell_quoted(std::string_view word);

struct SshFile {
  enum class Kind { file, folder, other };  // links are followed, except to nowhere: other
  std::string name;                         // without its folder
  Kind kind = Kind::other;
  std::uint64_t size = 0;  // bytes
  std::uint32_t mode = 0;  // permissions, 0777 and the three above
  std::int64_t mtime = 0;  // seconds since 1970
};

// One connection, to be used by one thread at a time. The destructor closes it and does not wait; a program that still
// runs there loses its input and output, nothing else.
class SshSession {
 public:
  // Connected, host key checked, identity proved. Besides RemoteError: Stopped, and Error for files of ours that cannot
  // be read or written. SshTurnedAway when every try was, SshHostKeyChanged and SshLoginRefused.
  static SshSession connect(const SshTarget& target, const SshOptions& options);
  SshSession(SshSession&&) noexcept;
  SshSession& operator=(SshSession&&) noexcept;
  ~SshSession();

  const std::string& name() const;  // to_string(target): for messages
  const std::string& user() const;  // who it logged in as
  // Numeric addresses of the TCP connection, to the first hop where there is a ProxyJump: the local one is where the
  // host, if any, can reach this machine.
  // Empty where a ProxyCommand makes the connection.
  std::string local_address() const;
  std::string peer_address() const;

  // RemoteError when the connection is lost or the host refuses; how the program ended otherwise. A program that cannot
  // be started is the shell's code 126 or 127. Returns when the program has ended and its output is closed.
  SshExit run(const SshCommand& command);

  // Files, by SFTP. Remote paths are bytes; relative ones begin at the user's home.
  std::optional<SshFile> stat(const std::string& path);
  std::vector<SshFile> list(const std::string& folder);             // unsorted, without . and ..
  void make_folder(const std::string& path, unsigned mode = 0777);  // with its parents; may be there
  // The file appears whole or not at all: written beside under another name, then renamed over what was there.
  void put_file(const Path& local, const std::string& remote, unsigned mode);
  // `next` gives one piece after the other; an empty one is the end. What it throws leaves nothing there.
  void put_pieces(const std::function<std::string_view()>& next, const std::string& remote, unsigned mode);
  void put_text(std::string_view content, const std::string& remote, unsigned mode);
  std::string read_file(const std::string& path, std::size_t most_bytes = 1 << 20);  // RemoteError: longer than that
  std::string read_part(const std::string& path, std::uint64_t from, std::size_t most);  // less where the file ends
  void rename(const std::string& from, const std::string& to);                           // replaces `to`, in one step
  // The file must exist. False: the host refuses, for example because the file belongs to another user.
  [[nodiscard]] bool set_mode(const std::string& path, unsigned mode);
  void remove(const std::string& path);  // a file; one that is not there is fine
  // Lower-case hex, computed there by sha256sum, else here from what is read back. nullopt: no such file.
  std::optional<std::string> sha256(const std::string& path);

  struct State;

 private:
  explicit SshSession(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// sshd closed the connection before it said who it is, on every try until the deadline: too many others are logging in.
class SshTurnedAway : public RemoteError {
 public:
  using RemoteError::RemoteError;
};

// The key of the host differs from the known one, or is revoked: trying again does not change that.
class SshHostKeyChanged : public RemoteError {
 public:
  SshHostKeyChanged(const std::string& what, const std::string& hint, std::string forget_command = {})
      : RemoteError(what, hint), forget_command_(std::move(forget_command)) {}
  // Takes the old key out of the files of this machine; empty: a revoked key, or files that others own.
  const std::string& forget_command() const { return forget_command_; }

 private:
  std::string forget_command_;
};

// sshd took none of the keys that there are.
class SshLoginRefused : public RemoteError {
 public:
  using RemoteError::RemoteError;
};

}  // namespace dtrain::net
