#include "at_boot.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/ask_program.hpp>
#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/machine.hpp>
#include <dtrain/base/pipe.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/launcher/starter_launcher.hpp>
#include <dtrain/net/ssh.hpp>

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
constexpr auto kToAnswer = 20s;

std::string mark_of(const std::string& cluster) { return "# dtrain cluster " + cluster; }

// nullopt: there is no such program on this machine.
std::optional<ProgramAnswer> ask_crontab(const char* argument, const std::string& input) {
  const auto program = find_in_path("crontab", environment("PATH").value_or(""));
  if (!program) return std::nullopt;
  const FileDescriptor text = memory_file(input);
  Spawn child{.executable = *program, .arguments = {"crontab", argument}};
  child.environment = with_variables(own_environment(), {"LC_ALL=C"});
  child.input = text.get();
  const auto answer = try_asking(std::move(child), kToAnswer);
  if (!answer) throw Error(fmt::format("`crontab {}` did not end within {}", argument, format_duration(kToAnswer)));
  return answer;
}

// A user without a crontab is no error: "no crontab for me", and of BusyBox "can't open 'me': No such file or
// directory".
bool says_none(const std::string& errors) {
  return errors.find("no crontab for") != errors.npos || errors.find("No such file") != errors.npos;
}

// Any other failure must not be taken for an empty crontab, which would then replace the user's.
std::optional<std::string> crontab_now() {
  const auto answer = ask_crontab("-l", "");
  if (!answer) return std::nullopt;
  if (answer->code == 0) return answer->output;
  if (says_none(answer->errors)) return std::string();
  throw Error(fmt::format("the crontab could not be read: {}", trim(answer->errors)), "try `crontab -l` on the head");
}

std::string required_crontab(const std::string& cluster) {
  if (auto crontab = crontab_now()) return std::move(*crontab);
  throw UsageError(
      "setting 'at-boot': the head has no cron",
      fmt::format("install it there, or leave setting 'at-boot' out: any command, such as `dtrain jobs list "
                  "--cluster {}`, starts the queue again",
                  cluster));
}

void write_crontab(const std::string& text) {
  const auto answer = ask_crontab("-", text);
  if (answer && answer->code == 0) return;
  throw Error(fmt::format("the crontab could not be written: {}",
                          answer ? std::string(trim(answer->errors)) : "crontab is not there"),
              "try `crontab -e` on the head");
}

// cron takes a percent sign for the end of the command.
std::string for_cron(const std::string& text) {
  std::string safe;
  for (const char c : text) safe += c == '%' ? "\\%" : std::string(1, c);
  return safe;
}

}  // namespace

std::string boot_line(const cluster::RegisteredCluster& cluster, const std::vector<std::string>& program) {
  std::string words;
  for (const std::string& word : program) words += net::shell_quoted(word) + " ";
  const std::string there = net::shell_quoted((Path(cluster.folder) / "cluster.json").string());
  const std::string log = net::shell_quoted((Path(cluster.folder) / "runner.log").string());
  return for_cron(
      fmt::format("@reboot for i in $(seq 60); do if [ -e {} ]; then cd {} && exec {}agent --jobs-of {} "
                  "</dev/null >>{} 2>&1; fi; sleep 10; done {}",
                  there, net::shell_quoted(cluster.shared), words, cluster.name, log, mark_of(cluster.name)));
}

std::string without_boot_line(std::string_view crontab, const std::string& cluster) {
  std::string kept;
  while (!crontab.empty()) {
    const std::size_t end = std::min(crontab.find('\n'), crontab.size() - 1) + 1;
    const std::string_view line = crontab.substr(0, end);
    if (!trim(line).ends_with(mark_of(cluster))) kept += line;
    crontab.remove_prefix(end);
  }
  return kept;
}

void require_cron(const std::string& cluster) { required_crontab(cluster); }

void start_queue_at_boot(const cluster::RegisteredCluster& cluster) {
  const std::string before = required_crontab(cluster.name);
  std::string after = without_boot_line(before, cluster.name);
  if (!after.empty() && !after.ends_with('\n')) after += '\n';
  after += boot_line(cluster, launcher::program_by_path()) + "\n";
  if (after != before) write_crontab(after);
}

std::string forget_boot(const std::string& cluster) try {
  const auto before = crontab_now();
  if (!before) return {};
  const std::string after = without_boot_line(*before, cluster);
  if (after != *before) write_crontab(after);
  return {};
} catch (const Error& error) {
  return error.what();
}

}  // namespace dtrain::job
