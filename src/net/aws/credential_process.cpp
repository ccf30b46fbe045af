#include "credential_process.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <dtrain/base/ask_program.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/stop.hpp>

#include "instance.hpp"

namespace dtrain::net {

AwsCredentials run_credential_process(const std::string& command, const std::string& source) {
  Spawn child{.executable = "/bin/sh", .arguments = {"sh", "-c", command}, .environment = own_environment()};
  child.error = STDERR_FILENO;  // for people: a code to type, a page to open
  child.group = group_that_may_ask();
  // A stop that began before may need credentials for its last uploads: only a further signal ends the command.
  const int signals = stop_signals();
  const auto is_stopped = [&] { return stop_signals() != signals; };
  const auto answer = try_asking(child, std::chrono::seconds(60), is_stopped);
  const auto refuse = [&](const std::string& why) {
    return NoCredentials(fmt::format("{}: its credential_process {}", source, why), "run it by hand: " + command);
  };
  // Ctrl-C reaches a command of the foreground too, which may end by itself.
  if (is_stopped() && (!answer || answer->code != 0)) {
    throw Stopped(fmt::format("{}: its credential_process was stopped", source), "run the same command again to go on");
  }
  if (!answer) throw refuse("did not end in time");
  if (answer->code != 0) throw refuse("failed");
  try {
    return credentials_from(answer->output, source);
  } catch (const DataError& error) {
    throw refuse(fmt::format("printed no credentials: {}", error.what()));
  }
}

}  // namespace dtrain::net
