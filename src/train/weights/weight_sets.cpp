#include "weight_sets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <dtrain/base/text.hpp>

namespace dtrain::train {
namespace {

constexpr std::size_t kMostSetsNamed = 3;

int rank_of_prefix(std::string_view prefix) {
  constexpr std::array<std::string_view, 5> kPlain = {"model", "state_dict", "module", "net", "student"};
  constexpr std::array<std::string_view, 2> kCopies = {"ema", "teacher"};
  const auto is_among = [](const auto& words, std::string_view word) { return std::ranges::count(words, word) != 0; };
  bool is_plain = prefix.empty();
  for (const std::string& name : split(prefix, '.')) {
    is_plain = is_plain || is_among(kPlain, name);
    for (const std::string& part : split(name, '_')) {
      if (is_among(kCopies, part)) return 2;
    }
  }
  return is_plain ? 0 : 1;
}

std::string set_in_words(const WeightSet& set) {
  return set.prefix.empty() ? "without a prefix" : fmt::format("of '{}'", set.prefix.substr(0, set.prefix.size() - 1));
}

}  // namespace

std::vector<WeightSet> weight_sets(const std::unordered_set<std::string_view>& names,
                                   const std::vector<ForeignTensor>& tensors) {
  std::size_t longest = 0, most = 0;
  for (const std::string_view name : names) longest = std::max(longest, name.size());
  std::map<std::string_view, std::vector<std::size_t>> by_prefix;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string_view name = tensors[i].name;
    for (std::size_t at = name.size() - std::min(name.size(), longest); at < name.size(); ++at) {
      const bool begins_word = at == 0 || name[at - 1] == '.';
      if (!begins_word || !names.contains(name.substr(at))) continue;
      std::vector<std::size_t>& found = by_prefix[name.substr(0, at)];
      found.push_back(i);
      most = std::max(most, found.size());
    }
  }
  std::vector<WeightSet> sets;
  for (auto& [prefix, found] : by_prefix) {
    if (found.size() == most) sets.push_back({prefix, std::move(found)});
  }
  std::ranges::stable_sort(sets, {}, [](const WeightSet& set) { return rank_of_prefix(set.prefix); });
  return sets;
}

std::string choice_of_sets(const std::vector<WeightSet>& sets) {
  std::vector<std::string> others;
  for (const WeightSet& set : sets) {
    const auto is_read = [&](std::size_t tensor) { return std::ranges::binary_search(sets.front().tensors, tensor); };
    if (std::ranges::none_of(set.tensors, is_read)) others.push_back(set_in_words(set));
  }
  if (others.empty()) return {};
  return fmt::format("of its whole sets of weights those {} are read, not those {}", set_in_words(sets.front()),
                     join_first(others, kMostSetsNamed, ", "));
}

}  // namespace dtrain::train
