#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "common/at_a_terminal.hpp"
#include "ssh/proxy.hpp"

namespace dtrain::net::ssh {
namespace {

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
