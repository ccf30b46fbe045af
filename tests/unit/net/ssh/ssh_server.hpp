// A real sshd on a port of this machine, with its own configuration, keys and folder, which is also HOME of the shells
// it starts: nothing of the machine's own is read or changed. Who may log in: the user that runs the test, with the key
// of this server's folder.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include <dtrain/base/process.hpp>
#include <dtrain/net/ssh.hpp>

namespace dtrain::net {

using namespace std::chrono_literals;

constexpr const char* kSshd = "/usr/sbin/sshd";
inline bool sshd_is_missing() { return ::access(kSshd, X_OK) != 0; }
#define SKIP_WITHOUT_SSHD() \
  if (::dtrain::net::sshd_is_missing()) GTEST_SKIP() << "SKIPPED LOUDLY: install openssh-server"

inline int free_port() {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size);
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

// What the message of the RemoteError says that `work` throws, with its hint; "" when it throws none.
template <typename Work>
std::string failure_of(Work work) {
  try {
    work();
  } catch (const RemoteError& error) {
    return std::string(error.what()) + " | " + error.hint();
  }
  return "";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class SshServer {
 public:
  // `extra`: more lines for sshd_config; a Subsystem in it takes the place of the usual one.
  explicit SshServer(const std::string& extra = "") : folder_(make_folder_here()), port_(free_port()) {
    make_key("host");
    make_key("id");
    std::filesystem::copy_file(folder_ / "id.pub", folder_ / "authorized");
    write_file_atomic(
        folder_ / "sshd_config",
        fmt::format("Port {1}\nListenAddress 0.0.0.0\nHostKey {0}/host\nAuthorizedKeysFile {0}/authorized\n"
                    "PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
                    "KbdInteractiveAuthentication no\n{2}SetEnv HOME={0}\n{3}",
                    folder_.string(), port_,
                    extra.find("Subsystem") == extra.npos ? "Subsystem sftp internal-sftp\n" : "", extra));
    start();
  }
  ~SshServer() {
    stop();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  SshServer(const SshServer&) = delete;

  void start() {
    if (::geteuid() == 0) std::filesystem::create_directories("/run/sshd");  // sshd's own rule
    Spawn child = spawn_of({kSshd, "-D", "-f", folder_ / "sshd_config", "-E", folder_ / "log"});
    child.environment = own_environment();
    child.death_signal = SIGTERM;
    process_ = spawn(child);
    for (int tries = 0; tries < 2400; ++tries) {
      if (answers()) return;
      std::this_thread::sleep_for(25ms);
    }
    throw std::runtime_error("sshd does not start: " + log());
  }
  void stop() {
    if (process_ == 0) return;
    ::kill(process_, SIGTERM);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }
  void make_key(const std::string& name) {
    std::filesystem::remove(folder_ / name);
    if (std::system(fmt::format("ssh-keygen -q -t ed25519 -N '' -f {}/{}", folder_.string(), name).c_str()) != 0) {
      throw std::runtime_error("ssh-keygen failed");
    }
  }

  const Path& folder() const { return folder_; }
  pid_t process() const { return process_; }
  std::string log() const { return read_file(folder_ / "log"); }
  SshTarget target() const { return {"127.0.0.1", "", port_}; }
  SshOptions options() const {
    SshOptions options;
    options.known_hosts = folder_ / "known_hosts";
    options.new_host_keys = NewHostKeys::accept;
    options.identities = {folder_ / "id"};
    options.connect_deadline = 60s;  // the machine may be busy
    return options;
  }
  SshSession connect() const { return SshSession::connect(target(), options()); }

 private:
  static Path make_folder_here() {
    std::string name = testing::TempDir() + "sshd.XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    return name;
  }
  bool answers() const {
    const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port_));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }

  Path folder_;
  int port_;
  pid_t process_ = 0;
};

}  // namespace dtrain::net
