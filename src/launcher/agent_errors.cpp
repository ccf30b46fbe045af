#include "agent_errors.hpp"

#include <algorithm>

#include <dtrain/base/text.hpp>

namespace dtrain::launcher {
namespace {

constexpr std::string_view kOurs = "dtrain: ", kHint = "hint: ";
constexpr std::size_t kMostOfOthers = 500, kMostSaid = 4 << 10;

}  // namespace

std::string agent_errors(std::string_view said) {
  std::string all, ours;
  const auto add = [](std::string& words, std::string_view line) {
    words += (words.empty() ? "" : "; ") + std::string(line);
  };
  for (std::string_view line : split(said, '\n')) {
    line = trim(line);
    const bool is_ours = line.starts_with(kOurs), is_hint = line.starts_with(kHint);
    if (is_ours) line.remove_prefix(kOurs.size());
    if (line.empty()) continue;
    add(all, line);
    if (is_ours || is_hint) add(ours, line);
  }
  return ours.empty() ? all.substr(0, kMostOfOthers) : ours;
}

std::string errors_since(const Path& log, std::uintmax_t size) {
  try {
    const std::string all = read_file(log).substr(size);
    return agent_errors(all.substr(all.size() - std::min(all.size(), kMostSaid)));
  } catch (const std::exception&) {  // the folder is gone, or the log was made anew
    return "";
  }
}

}  // namespace dtrain::launcher
