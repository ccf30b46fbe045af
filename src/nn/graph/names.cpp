#include "names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include <dtrain/base/text.hpp>

namespace dtrain::nn {

std::optional<std::size_t> index_of(Names names, std::string_view name) {
  const auto found = std::ranges::find(names, name, [](const char* known) { return std::string_view(known); });
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

std::string advice(Names names, std::string_view name) {
  const std::vector<std::string> candidates(names.begin(), names.end());
  if (const auto nearest = nearest_name(name, candidates)) return fmt::format("did you mean {}?", *nearest);
  return fmt::format("choose one of {}", join(candidates, ", "));
}

}  // namespace dtrain::nn
