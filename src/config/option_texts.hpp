// Options as texts by name, of those that differ from their default: the tags in which a cluster keeps what it was
// created with. What travels within a job is a RunSpec (run_spec.hpp).
#pragma once

#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>

#include "option_set.hpp"

namespace dtrain::config {

// Options is bound by bind(OptionSet&, Options&).
template <typename Options>
Json changed_options(const Options& options) {
  Options mine, fresh;
  OptionSet set, defaults;
  bind(set, mine);
  bind(defaults, fresh);
  mine = options;
  Json changed = Json::object();
  for (const Option& option : set.options()) {
    const std::string text = option.show();
    if (text != defaults.find(option.name())->show()) changed[option.name()] = text;
  }
  return changed;
}

template <typename Options>
Options options_from(const Json& changed) {
  Options options;
  OptionSet set;
  bind(set, options);
  for (const auto& [name, text] : changed.as_object()) {
    Option* option = set.find(name);
    if (!option)
      throw DataError(fmt::format("the stored options name '{}', which this version of dtrain does not know", name));
    option->set(text.as_string());
  }
  return options;
}

}  // namespace dtrain::config
