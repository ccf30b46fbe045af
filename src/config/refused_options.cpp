#include "refused_options.hpp"

#include <fmt/format.h>

#include <utility>

#include <dtrain/base/error.hpp>

namespace dtrain::config {
namespace {

bool fits(std::string_view pattern, std::string_view text) {
  if (!pattern.ends_with('*')) return text == pattern;
  return text.starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace

void refuse_options(OptionSet& set, std::span<const RefusedOption> table) {
  for (const RefusedOption& row : table) {
    const auto refuse = [&row](const std::string& text) {
      if (!row.accepted || text != row.accepted) throw UsageError(row.reason, row.hint);
    };
    Option& option = set.add_custom(row.flags, row.value, row.reason, refuse, [] { return std::string(); });
    option.hidden = option.flag_only = true;
    option.refusals.push_back({"", row.reason, row.hint});
  }
}

void refuse_values(OptionSet& set, std::span<const RefusedValue> table) {
  for (const RefusedValue& row : table) {
    Option* const option = set.find(row.option);
    DTRAIN_CHECK(option, "refused values are values of an option");
    option->refusals.push_back({row.text, row.reason, row.hint});
    option->set = [&row, next = std::exchange(option->set, nullptr)](const std::string& text) {
      if (fits(row.text, text)) throw UsageError(fmt::format("{} is not supported: {}", text, row.reason), row.hint);
      next(text);
    };
  }
}

}  // namespace dtrain::config
