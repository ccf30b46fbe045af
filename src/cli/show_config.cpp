#include "show_config.hpp"

#include <fmt/format.h>

namespace dtrain::cli {

// The words of the help where no source gave a value, and the field holds none that a user could choose.
static std::string value_in_force(const config::Option& option) {
  const std::string value = option.show();
  const bool has_own = option.source != config::Source::fallback || !(option.found_later || value.empty());
  return has_own || option.required ? value : option.described_default();
}

void show_config(const CommandTree& tree, const Command& command, Reporter& reporter) {
  Json values = Json::array();
  for (const config::OptionSet* set : {&command.options, &tree.global_options}) {
    for (const config::Option& option : set->options()) {
      const bool is_given = option.source != config::Source::fallback;
      if (!is_given && (option.flag_only || !option.same_as.empty())) continue;
      const std::string value = value_in_force(option);
      const std::string origin = option.required && option.source == config::Source::fallback
                                     ? "required, not given"
                                     : config::plain_origin(option);
      values.push_back(Json::object({{"name", option.name()},
                                     {"value", value},
                                     {"origin", origin},
                                     {"env", option.flag_only ? Json() : Json(option.variable())}}));
      if (!reporter.json()) reporter.answer(fmt::format("{} = {}  ({})", option.name(), value, origin));
    }
  }
  if (reporter.json()) {
    reporter.answer_json(Json::object({{"schema", "dtrain.config/1"}, {"command", command.path}, {"values", values}}));
  }
}

}  // namespace dtrain::cli
