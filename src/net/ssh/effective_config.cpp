#include <fmt/format.h>

#include <dtrain/base/ask_program.hpp>
#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/machine.hpp>
#include <dtrain/base/pipe.hpp>
#include <dtrain/base/text.hpp>

#include "config.hpp"

namespace dtrain::net::ssh {
namespace {

constexpr int kExitRefused = 255;  // ssh's own failures

std::vector<Path> existing(const std::vector<Path>& files) {
  std::vector<Path> found;
  std::error_code ignored;
  for (const Path& file : files) {
    if (!file.empty() && std::filesystem::exists(file, ignored)) found.push_back(std::filesystem::absolute(file));
  }
  return found;
}

// A configuration that reads these files one after the other, each from its own beginning.
std::string including(const std::vector<Path>& files) {
  std::string text;
  for (const Path& file : files) {
    if (file.string().find_first_of("\"*?[\\\n") != std::string::npos) {
      throw UsageError(fmt::format("{}: ssh cannot include a file of this name", file.string()), "rename it");
    }
    text += fmt::format("Include \"{}\"\n", file.string());
  }
  return text;
}

class Client {
 public:
  Client(Path program, const SshTarget& target, const Patience& patience)
      : program_(std::move(program)), target_(target), patience_(patience) {}

  // nullopt: this program does not know -G. It runs the commands of `Match exec`.
  std::optional<std::string> resolve(const std::string& config) {
    const FileDescriptor input = memory_file(config);
    Spawn child{.executable = program_, .arguments = {"ssh", "-G", "-F", "/dev/stdin"}};
    if (!target_.user.empty()) child.arguments.insert(child.arguments.end(), {"-l", target_.user});
    if (target_.port != 0) child.arguments.insert(child.arguments.end(), {"-p", std::to_string(target_.port)});
    child.arguments.insert(child.arguments.end(), {"--", target_.host});
    child.environment = own_environment();
    child.input = input.get();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(patience_.until - Clock::now());
    const auto answer = try_asking(child, left, patience_.stop);
    if (!answer) {
      (void)patience_.next_look();  // throws where that was the stop
      throw UsageError(fmt::format("ssh configuration of {}: `ssh -G` did not end in time", to_string(target_)),
                       "look at its `Match exec` commands");
    }
    if (answer->code == 0) return answer->output;
    if (answer->code != kExitRefused) return std::nullopt;
    throw UsageError(fmt::format("ssh configuration of {}: {}", to_string(target_), trim(answer->errors)),
                     fmt::format("try: ssh -G {}", target_.host));
  }

 private:
  Path program_;
  const SshTarget& target_;
  const Patience& patience_;
};

}  // namespace

HostConfig effective_config(const SshTarget& target, const SshOptions& options, const Patience& patience) {
  const std::vector<Path> files = existing({options.config, options.system_config});
  if (files.empty()) return {};
  if (const auto program = find_in_path("ssh", environment("PATH").value_or(""))) {
    Client client(*program, target, patience);
    const auto resolved = client.resolve(including(files));
    const auto defaults = resolved ? client.resolve("") : std::nullopt;
    if (defaults) return parse_resolved(*resolved, *defaults, target);
  }
  return read_config(files, target);
}

}  // namespace dtrain::net::ssh
