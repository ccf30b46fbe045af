#include "aws/credential_process.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/stop.hpp>

#include "common/at_a_terminal.hpp"

namespace dtrain::net {
namespace {

constexpr const char* kPrint = R"(printf '{"AccessKeyId": "%s", "SecretAccessKey": "s"}' "$key")";

std::string key_printed_by(const std::string& command) {
  try {
    return run_credential_process(command + kPrint, "AWS profile p").access_key;
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(CredentialProcess, MayAskTheUserAtTheTerminal) {
  EXPECT_TRUE(at_a_terminal("123456\n", [] { return key_printed_by("read key </dev/tty; ") == "123456"; }));
}

TEST(CredentialProcess, HasNoTerminalInTheBackground) {
  EXPECT_TRUE(at_a_terminal("123456\n", [] {
    const pid_t background = ::fork();
    if (background == 0) {
      ::setpgid(0, 0);
      ::_exit(key_printed_by("{ read key </dev/tty; } 2>/dev/null || key=none; ") == "none" ? 0 : 1);
    }
    int status = -1;
    ::waitpid(background, &status, 0);
    return status == 0;
  }));
}

bool is_stopped_by(const std::string& command) {
  return at_a_terminal("", [&] {
    watch_stop_signals();
    try {
      (void)run_credential_process(command, "AWS profile p");
      return false;
    } catch (const Error& error) {
      return dynamic_cast<const Stopped*>(&error) != nullptr;
    }
  });
}

TEST(CredentialProcess, EndsAtAStopSignalThoughItIgnoresIt) {
  EXPECT_TRUE(is_stopped_by("trap '' INT; kill -INT $PPID; sleep 600"));
}

TEST(CredentialProcess, IsStoppedAndHasNotFailedWhereTheSignalEndsItToo) {
  EXPECT_TRUE(is_stopped_by("kill -INT 0; sleep 600"));
}

TEST(CredentialProcess, RunsDuringAStopThatBeganBefore) {
  EXPECT_TRUE(at_a_terminal("", [] {
    watch_stop_signals();
    ::raise(SIGINT);
    return key_printed_by("key=last; ") == "last";
  }));
}

}  // namespace
}  // namespace dtrain::net
