#include "table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dtrain::cli {

std::vector<std::string> aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t at = 0; at < row.size(); ++at) widths[at] = std::max(widths[at], row[at].size());
  }
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t at = 0; at < row.size(); ++at) line += fmt::format("{:<{}}", row[at], widths[at] + 2);
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  return lines;
}

void answer_rows(const std::vector<std::vector<std::string>>& rows, Reporter& reporter) {
  const std::vector<std::string> lines = aligned(rows);
  reporter.answer(reporter.paint_answer(Style::heading, lines.front()));
  for (std::size_t at = 1; at < lines.size(); ++at) reporter.answer(lines[at]);
}

}  // namespace dtrain::cli
