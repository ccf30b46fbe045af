#include "listed_once.hpp"

#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <dtrain/base/error.hpp>

namespace dtrain::data {
namespace {

std::string plain_name(const PackItem& item) { return Path(item.file).lexically_normal().string(); }

}  // namespace

void refuse_different_labels(const std::string& source, const std::vector<std::size_t>& lines, const PackList& list) {
  std::unordered_map<std::string, std::size_t> first_rows;
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const std::size_t first = first_rows.emplace(plain_name(list.items[i]), i).first->second;
    if (first == i || list.items[first].labels == list.items[i].labels) continue;
    throw DataError(
        fmt::format("{}: lines {} and {} give {} different labels", source, lines[first], lines[i], list.items[i].file),
        "keep one of the two lines");
  }
}

void keep_first_rows(PackList& list) {
  std::unordered_set<std::string> seen;
  std::vector<PackItem> kept;
  for (PackItem& item : list.items) {
    if (seen.insert(plain_name(item)).second) {
      kept.push_back(std::move(item));
    } else {
      list.skipped[kListedTwice].push_back(item.file);
    }
  }
  list.items = std::move(kept);
}

}  // namespace dtrain::data
