#include "log_answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include <dtrain/base/text.hpp>

#include "reply.hpp"

namespace dtrain::board {
namespace {

constexpr std::uint64_t kPiece = 256 << 10, kSearched = 1 << 20;
constexpr std::size_t kMostMatches = 1000, kLongestLine = 4000, kMostSearched = 1 << 20;

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

// Without the beginning of a letter of UTF-8 at its end: the whole letter comes with the next piece.
std::string whole_letters(std::string text) {
  constexpr std::size_t kLongestLetter = 4;
  for (std::size_t back = 1; back <= std::min(text.size(), kLongestLetter); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (byte < 0x80) break;
    if (byte < 0xC0) continue;  // inside a letter
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
    if (length > back) text.erase(text.size() - back);
    break;
  }
  return text;
}

Json tail_of(Files& files, const std::string& path, const Target& target) {
  const std::uint64_t size = files.size(path).value_or(0);
  const auto asked = target.number("from");
  std::uint64_t from = asked && *asked >= 0 ? static_cast<std::uint64_t>(*asked) : size - std::min(size, kPiece);
  if (from > size) from = 0;  // it was cut
  std::string text = whole_letters(files.read(path, from, kPiece));
  const bool cut = !asked && from > 0;
  const std::uint64_t next = from + text.size();
  if (cut) text.erase(0, text.find('\n') + 1);
  return Json::object({{"from", from}, {"next", next}, {"size", size}, {"cut", cut}, {"text", text}});
}

class Search {
 public:
  explicit Search(std::string_view words) : words_(in_lower_case(words)) {}
  void add(std::string_view line) {
    ++number_;
    if (in_lower_case(line).find(words_) == std::string::npos) return;
    if (matches_.as_array().size() == kMostMatches) {
      more_ = true;
      return;
    }
    matches_.push_back(Json::object({{"line", number_}, {"text", line.substr(0, kLongestLine)}}));
  }
  bool is_full() const { return more_; }
  Json json() const { return Json::object({{"matches", matches_}, {"more", more_}}); }

 private:
  const std::string words_;
  std::uint64_t number_ = 0;
  Json matches_ = Json::array();
  bool more_ = false;
};

Json found_in(Files& files, const std::string& path, const std::string& words) {
  Search search(words);
  std::string line;  // its beginning, where it stands in earlier pieces
  const auto grow = [&](std::string_view part) { line += part.substr(0, kMostSearched - line.size()); };
  for (std::uint64_t from = 0; !search.is_full();) {
    const std::string piece = files.read(path, from, kSearched);
    if (piece.empty()) break;
    from += piece.size();
    std::string_view left = piece;
    for (std::size_t end = left.find('\n'); end != left.npos; end = left.find('\n')) {
      grow(left.substr(0, end));
      search.add(std::exchange(line, {}));
      left.remove_prefix(end + 1);
    }
    grow(left);
  }
  if (!line.empty()) search.add(line);
  return search.json();
}

}  // namespace

Json logs_of(Files& files, const std::string& folder) {
  Json logs = Json::array();
  for (const ListedFile& file : files.list(folder + "/logs"))
    logs.push_back(Json::object({{"name", file.name}, {"size", file.size}}));
  return Json::object({{"logs", logs}});
}

Json log_of(Files& files, const std::string& folder, const Target& target) {
  const std::string name = target.text("name"), words = target.text("search");
  const std::vector<ListedFile> logs = files.list(folder + "/logs");
  // The name must stand in the list, so that no path leads out of the folder. Files follows no links.
  if (std::ranges::find(logs, name, &ListedFile::name) == logs.end())
    throw Missing(fmt::format("{}: the job has no such log", name));
  const std::string path = folder + "/logs/" + name;
  return words.empty() ? tail_of(files, path, target) : found_in(files, path, words);
}

}  // namespace dtrain::board
