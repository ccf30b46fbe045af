#include <unistd.h>

#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/text.hpp>

extern char** environ;

namespace dtrain {
namespace {

std::vector<std::string> own_arguments() {
  std::string text = read_file("/proc/self/cmdline");
  if (!text.empty()) text.pop_back();
  return split(text, '\0');
}

constexpr std::string_view kSelf = "/proc/self/exe";

// "ld-linux-x86-64.so.2 --argv0 dtrain --library-path lib bin/dtrain ARGUMENTS": as packaging/launcher.cpp writes it,
// every option of the loader has a value.
std::vector<std::string> command_of_loader(std::vector<std::string> arguments) {
  std::size_t program = 1;
  while (program < arguments.size() && arguments[program].starts_with("--")) program += 2;
  if (program >= arguments.size()) throw Error("cannot tell how this program was started, to start it again");
  arguments.resize(program + 1);
  return arguments;
}

}  // namespace

std::vector<std::string> own_command() {
  std::error_code error;
  const Path executable = std::filesystem::read_symlink(kSelf, error);
  if (!executable.filename().string().starts_with("ld-linux")) return {std::string(kSelf)};
  return command_of_loader(own_arguments());
}

Spawn spawn_of(std::vector<std::string> command) {
  DTRAIN_CHECK(!command.empty(), "a command without words");
  Spawn child{.executable = command[0], .arguments = std::move(command)};
  if (child.executable == kSelf) child.arguments[0] = "dtrain";
  return child;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable; ++variable) variables.emplace_back(*variable);
  return variables;
}

std::vector<std::string> with_variables(std::vector<std::string> environment, const std::vector<std::string>& changes) {
  for (const std::string& change : changes) {
    const std::string lead = change.substr(0, change.find('=')) + "=";
    std::erase_if(environment, [&](const std::string& variable) { return variable.starts_with(lead); });
    environment.push_back(change);
  }
  return environment;
}

}  // namespace dtrain
