#include "find_program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::external {
namespace {

// What execvp() takes where PATH is not set.
constexpr const char* kUsualPath = "/usr/local/bin:/usr/bin:/bin";

std::string path_of(const std::vector<std::string>& environment) {
  for (const std::string& variable : environment) {
    if (variable.starts_with("PATH=")) return variable.substr(5);
  }
  return kUsualPath;
}

bool is_program(const Path& file) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0;
}

// The kernel's "no such file" would be said of the script, which is there.
Path with_interpreter(const Path& file) {
  std::ifstream stream(file);
  std::string line;
  if (!std::getline(stream, line) || !line.starts_with("#!")) return file;
  const std::string_view words = trim(std::string_view(line).substr(2));
  const Path interpreter = std::string(words.substr(0, words.find_first_of(" \t")));
  if (interpreter.empty() || is_program(interpreter)) return file;
  throw Error(fmt::format("{}: the interpreter that its first line names, {}, is not there", file.string(),
                          interpreter.string()),
              "install it, or start the file through another: python3 FILE");
}

}  // namespace

Path find_program(const std::string& word, const std::vector<std::string>& environment) {
  if (word.find('/') != word.npos) {
    if (is_program(word)) return with_interpreter(word);
    std::error_code ignored;
    const bool there = std::filesystem::exists(word, ignored);
    throw Error(fmt::format("{}: {} in {}", word, there ? "is not executable" : "is not there",
                            std::filesystem::current_path(ignored).string()),
                there ? "make it executable, or start it through its interpreter: python3 FILE"
                      : "programs run in the folder in which dtrain was started, or in --sync-dst-dir");
  }
  for (const std::string& folder : split(path_of(environment), ':')) {
    const Path file = Path(folder.empty() ? "." : folder) / word;
    if (is_program(file)) return with_interpreter(file);
  }
  throw Error(fmt::format("{}: no such program in PATH, {}", word, path_of(environment)),
              "give its whole path, or --env PATH=... for this job");
}

}  // namespace dtrain::external
