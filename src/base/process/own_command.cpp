#include <unistd.h>

#include <algorithm>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/text.hpp>

extern char** environ;

namespace dtrain {
namespace {

constexpr std::string_view kSelf = "/proc/self/exe";

std::vector<std::string> whole_command_line() {
  std::string text = read_file("/proc/self/cmdline");
  if (!text.empty()) text.pop_back();
  return split(text, '\0');
}

// "ld-linux-x86-64.so.2 --argv0 dtrain --library-path lib bin/dtrain ARGUMENTS": as packaging/launcher.cpp writes it,
// every option of the loader has a value.
std::size_t words_of_loader(const std::vector<std::string>& line) {
  std::size_t program = 1;
  while (program < line.size() && line[program].starts_with("--")) program += 2;
  if (program >= line.size()) throw Error("cannot tell how this program was started, to start it again");
  return program + 1;
}

bool runs_in_loader(const Path& executable) { return executable.filename().string().starts_with("ld-linux"); }

}  // namespace

std::vector<std::string> own_command() {
  std::error_code error;
  const Path executable = std::filesystem::read_symlink(kSelf, error);
  if (!runs_in_loader(executable)) return {std::string(kSelf)};
  std::vector<std::string> line = whole_command_line();
  line.resize(words_of_loader(line));
  return line;
}

std::vector<std::string> own_arguments() {
  std::error_code error;
  std::vector<std::string> line = whole_command_line();
  const std::size_t before = runs_in_loader(std::filesystem::read_symlink(kSelf, error)) ? words_of_loader(line) : 1;
  line.erase(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(std::min(before, line.size())));
  return line;
}

Spawn spawn_of(std::vector<std::string> command) {
  DTRAIN_CHECK(!command.empty(), "a command without words");
  Spawn child{.executable = command.front()};
  child.arguments = std::move(command);
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
