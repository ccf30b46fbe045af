#include <unistd.h>

#include <algorithm>

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
  const Path executable = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!executable.filename().string().starts_with("ld-linux")) return {"/proc/self/exe"};
  return command_of_loader(own_arguments());
}

std::vector<std::string> own_environment() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable; ++variable) variables.emplace_back(*variable);
  return variables;
}

}  // namespace dtrain
