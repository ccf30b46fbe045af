#include "find_program.hpp"

#include <fmt/format.h>

#include <fstream>

#include <dtrain/base/error.hpp>
#include <dtrain/base/machine.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::external {
namespace {

// The path that execvp() uses where PATH is not set.
constexpr const char* kUsualPath = "/usr/local/bin:/usr/bin:/bin";
constexpr const char* kOneWord = "give program and arguments as separate words, without quotes around all of them";

bool is_command_line(const std::string& name) { return name.find_first_of(" \t\n") != name.npos; }

std::string path_of(const std::vector<std::string>& environment) {
  for (const std::string& variable : environment) {
    if (variable.starts_with("PATH=")) return variable.substr(5);
  }
  return kUsualPath;
}

// Checks the interpreter: the kernel would report "no such file" for the script, which exists.
Path with_interpreter(const Path& file) {
  std::ifstream stream(file);
  std::string line;
  if (!std::getline(stream, line) || !line.starts_with("#!")) return file;
  const std::string_view words = trim(std::string_view(line).substr(2));
  const std::size_t blank = words.find_first_of(" \t");
  const Path interpreter = std::string(words.substr(0, blank));
  // To the kernel the CR is a part of the last word. Some interpreters pass over one behind an option, and so does
  // `env -S`.
  const std::string_view argument = blank == words.npos ? std::string_view() : trim(words.substr(blank));
  if (line.ends_with('\r') && (argument.empty() || (interpreter.filename() == "env" && !argument.starts_with('-')))) {
    throw Error(file.string() + ": its lines end in CR LF, as on Windows, so its interpreter is not found",
                fmt::format("sed -i 's/\\r$//' {}", file.string()));
  }
  if (interpreter.empty() || is_program(interpreter)) return file;
  throw Error(fmt::format("{}: the interpreter that its first line names, {}, is not there", file.string(),
                          interpreter.string()),
              "install it, or start the file through another: python3 FILE");
}

}  // namespace

Path find_program(const std::string& message, const std::vector<std::string>& environment) {
  if (message.find('/') != message.npos) {
    if (is_program(message)) return with_interpreter(message);
    std::error_code ignored;
    const bool there = std::filesystem::exists(message, ignored);
    const std::string folder = std::filesystem::current_path(ignored).string();
    if (there) {
      throw Error(fmt::format("{}: is not executable in {}", message, folder),
                  "make it executable, or start it through its interpreter: python3 FILE");
    }
    throw Error(fmt::format("{}: is not there in {}", message, folder),
                is_command_line(message)
                    ? kOneWord
                    : "programs run in the folder in which dtrain was started, or in setting 'sync-dst-dir'");
  }
  if (const auto file = find_in_path(message, path_of(environment))) return with_interpreter(*file);
  if (std::error_code ignored; message.ends_with(".py") && std::filesystem::is_regular_file(message, ignored)) {
    throw Error(fmt::format("{}: a file of {}, and no program in PATH", message,
                            std::filesystem::current_path(ignored).string()),
                fmt::format("start it through its interpreter: python3 {}", message));
  }
  throw Error(fmt::format("{}: no such program in PATH, {}", message, path_of(environment)),
              is_command_line(message) ? kOneWord : "give its whole path, or setting 'env' PATH=... for this job");
}

}  // namespace dtrain::external
