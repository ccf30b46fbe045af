#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "ssh/proxy.hpp"

namespace dtrain::net::ssh {
namespace {

// Whether act() is true in a process of its own, in the foreground of a new terminal where somebody has typed.
template <typename Act>
bool at_a_terminal(std::string_view typed, const Act& act) {
  const FileDescriptor master(::posix_openpt(O_RDWR | O_NOCTTY));
  if (::grantpt(master.get()) != 0 || ::unlockpt(master.get()) != 0) return false;
  const FileDescriptor terminal(::open(::ptsname(master.get()), O_RDWR | O_NOCTTY));
  if (::write(master.get(), typed.data(), typed.size()) != static_cast<ssize_t>(typed.size())) return false;
  const pid_t process = ::fork();
  if (process == 0) {
    ::setsid();
    ::_exit(::ioctl(terminal.get(), TIOCSCTTY, 0) == 0 && act() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(process, &status, 0);
  return status == 0;
}

// What comes within a few seconds.
std::string read_from(int socket) {
  pollfd waiting{socket, POLLIN, 0};
  char text[64];
  const ssize_t got = ::poll(&waiting, 1, 5'000) == 1 ? ::read(socket, text, sizeof text) : 0;
  return got > 0 ? std::string(text, static_cast<std::size_t>(got)) : "";
}

TEST(SshProxy, MayAskTheUserAtTheTerminal) {
  EXPECT_TRUE(at_a_terminal("word\n", [] {
    ProxyProcess proxy("sh -c 'read answer </dev/tty; echo $answer'");
    return read_from(proxy.take_socket().get()) == "word\n";
  }));
}

// The kernel stops the whole group of a process that reads its terminal in the background.
TEST(SshProxy, InTheBackgroundItHasNoTerminal) {
  EXPECT_TRUE(at_a_terminal("word\n", [] {
    const pid_t background = ::fork();
    if (background == 0) {
      ::setpgid(0, 0);
      ProxyProcess proxy("sh -c 'read answer </dev/tty; echo none$answer'");
      ::_exit(read_from(proxy.take_socket().get()) == "none\n" ? 0 : 1);
    }
    int status = -1;
    ::waitpid(background, &status, WUNTRACED);
    if (WIFSTOPPED(status)) ::kill(-background, SIGKILL);
    return status == 0;
  }));
}

// The stop that such a signal begins needs the connection.
TEST(SshProxy, OutlivesTheSignalsThatAskItsGroupToStop) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    EXPECT_TRUE(at_a_terminal("", [signal] {
      ::signal(signal, SIG_IGN);
      ProxyProcess proxy("cat");
      const FileDescriptor socket = proxy.take_socket();
      ::kill(0, signal);
      return ::write(socket.get(), "x", 1) == 1 && read_from(socket.get()) == "x";
    })) << signal;
  }
}

}  // namespace
}  // namespace dtrain::net::ssh
