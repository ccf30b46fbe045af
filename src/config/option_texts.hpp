// Options as a document for other processes of a job: the texts of those that are not their default. Neither the
// reader's environment nor its configuration files can change anything.
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
      throw DataError(fmt::format("the job has an option '{}', which this version of dtrain does not know", name));
    option->set(text.as_string());
  }
  return options;
}

// Refuses a document of another version, and goes to the folder in which the person started the job where there is such
// a one: paths are as the person wrote them, so they mean the same in messages and here.
void enter_document(const Json& document);
// What such a document begins with. `copied_to`: where hosts have what is here; empty: here.
Json begin_document(const std::string& copied_to);

}  // namespace dtrain::config
