#include "locks.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <fstream>
#include <iterator>
#include <vector>

#include <dtrain/base/text.hpp>

namespace dtrain::board {

std::set<std::string> parse_locks(std::string_view text) {
  std::set<std::string> files;
  for (const std::string& line : split(text, '\n')) {
    std::vector<std::string> words;  // "1: FLOCK  ADVISORY  WRITE 2044 fe:00:131090 0 EOF"
    for (const std::string& word : split(line, ' ')) {
      if (!word.empty()) words.push_back(word);
    }
    if (words.size() >= 6 && words[1] == "FLOCK") files.insert(words[5]);
  }
  return files;
}

HeldLocks::HeldLocks() {
  std::ifstream file("/proc/locks");
  files_ = parse_locks(std::string(std::istreambuf_iterator<char>(file), {}));
}

bool HeldLocks::holds(const std::string& path) const {
  struct stat status {};
  if (files_.empty() || ::lstat(path.c_str(), &status) != 0) return false;
  return files_.contains(
      fmt::format("{:02x}:{:02x}:{}", ::major(status.st_dev), ::minor(status.st_dev), status.st_ino));
}

}  // namespace dtrain::board
