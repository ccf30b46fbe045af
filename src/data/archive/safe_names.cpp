#include "safe_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::data {

bool stays_inside(std::string_view name) {
  const std::vector<std::string> parts = split(name, '/');
  const bool climbs = std::find(parts.begin(), parts.end(), "..") != parts.end();
  return !name.empty() && !name.starts_with('/') && !climbs && name.find('\0') == name.npos;
}

void check_stays_inside(std::string_view name, std::string_view source) {
  if (stays_inside(name)) return;
  throw DataError(fmt::format("{}: holds the name \"{}\", which would be written outside of the folder", source, name),
                  "do not trust this source");
}

bool is_of_other_programs(const Path& name) {
  constexpr std::array<std::string_view, 7> kFolders{
      "__MACOSX", "@eaDir", "#recycle", "@Recycle", "lost+found", "$RECYCLE.BIN", "System Volume Information"};
  const std::string text = name.string();
  return std::ranges::find(kFolders, text) != kFolders.end() || (text.starts_with('.') && text != "." && text != "..");
}

bool is_hidden_path(const Path& path) { return std::any_of(path.begin(), path.end(), is_of_other_programs); }

void refuse_to_send(const Path& path) {
  throw DataError(fmt::format("{}: a link to a folder or to nothing, or no file", path.string()),
                  "take it away, or name the folder that it leads to");
}

}  // namespace dtrain::data
