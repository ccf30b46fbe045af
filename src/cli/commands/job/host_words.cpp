#include "host_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <dtrain/base/text.hpp>
#include <dtrain/elastic/host_file.hpp>
#include <dtrain/elastic/host_phase.hpp>

namespace dtrain::cli {
namespace {

std::vector<std::string> without_repetitions(const std::vector<std::string>& texts) {
  std::vector<std::string> once;
  for (const std::string& text : texts) {
    if (!text.empty() && std::ranges::find(once, text) == once.end()) once.push_back(text);
  }
  return once;
}

bool may_be_added(const Json& row) {
  const auto phase = enum_value(elastic::kHostPhaseNames, row.at("state").as_string());
  return phase == elastic::HostPhase::drained || phase == elastic::HostPhase::leaving;
}

bool is_listed_in(std::string_view file, const std::string& name) {
  return file.empty() || std::ranges::any_of(elastic::parse_host_file(file).hosts,
                                             [&](const elastic::HostLine& host) { return host.name == name; });
}

}  // namespace

std::vector<std::string> host_names(const std::string& words) { return without_repetitions(split(words, ' ')); }

std::vector<std::string> host_lines(const std::string& words) {
  std::vector<std::string> lines;
  for (const std::string& word : split(words, ' ')) {
    if (word.empty()) continue;
    if (word.starts_with("slots=") && !lines.empty()) {
      lines.back() += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  return without_repetitions(lines);
}

void check_new_lines(const std::vector<std::string>& lines, const Json& list, std::string_view file) {
  std::string text;
  for (const Json& row : list.at("hosts").as_array()) {
    const std::string& name = row.at("name").as_string();
    if (!may_be_added(row) && is_listed_in(file, name)) text += name + "\n";
  }
  for (const std::string& line : lines) text = elastic::with_host(text, line);
}

std::string goodput_text(double percent) { return percent > 0 ? fmt::format("{:.0f} %", percent) : "-"; }

}  // namespace dtrain::cli
