#include "program_check.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::cluster {
namespace {

using namespace std::chrono_literals;
constexpr auto kStartTime = 20s;
constexpr std::size_t kMostErrors = 2 << 10;

}  // namespace

Said said_by(net::SshSession& session, net::SshCommand command, std::chrono::milliseconds deadline) {
  Said said;
  command.deadline = deadline;
  command.skip_login_text = true;
  command.on_output = [&said](std::string_view text) { said.output += text; };
  command.on_error = [&said](std::string_view text) {
    said.errors += text.substr(0, kMostErrors - std::min(kMostErrors, said.errors.size()));
  };
  said.exit = session.run(command);
  return said;
}

std::string end_text(const net::SshExit& exit) {
  if (exit.timed_out) return "did not end in time";
  if (exit.signal == "ILL") return "was killed by SIGILL: its processor is too old for this program";
  if (!exit.signal.empty()) return fmt::format("was killed by SIG{}", exit.signal);
  return fmt::format("ended with {}", exit.code);
}

void check_kind(net::SshSession& session) {
  utsname own{};
  ::uname(&own);
  const std::string here = fmt::format("{} {}", own.sysname, own.machine);
  const std::string there(trim(said_by(session, {.shell = "uname -sm"}, kStartTime).output));
  if (there == here) return;
  throw RemoteError(fmt::format("{}: it is {}, and this program is for {}", session.name(),
                                there.empty() ? "no machine with a POSIX shell" : there, here),
                    "leave this machine out");
}

void check_starts(net::SshSession& session, const std::vector<std::string>& program) {
  std::vector<std::string> line = program;
  line.emplace_back("--version");
  const Said said = said_by(session, {.argv = line}, kStartTime);
  if (said.exit.ok()) return;
  const std::string words(trim(said.errors));
  throw RemoteError(fmt::format("{}: dtrain does not start there: it {}{}{}", session.name(), end_text(said.exit),
                                words.empty() ? "" : ": ", words.substr(0, words.find('\n'))),
                    "`dtrain doctor` there says what is missing; else leave this machine out");
}

}  // namespace dtrain::cluster
