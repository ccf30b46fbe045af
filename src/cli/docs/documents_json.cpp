// The command tree for programs.
#include <limits>

#include "cli/sources.hpp"
#include "cli/topics.hpp"
#include "documents.hpp"

namespace dtrain::cli {
namespace {

Json range_of(const ValueRange& range) {
  const ValueRange open;
  Json json = Json::object();
  if (range.low != open.low) json[range.low_is_out ? "more_than" : "at_least"] = range.low;
  if (range.high != open.high) json[range.high_is_out ? "less_than" : "at_most"] = range.high;
  return json;
}

Json refusals_of(const config::Option& option) {
  Json list = Json::array();
  for (const config::Refusal& refusal : option.refusals) {
    list.push_back(Json::object({{"value", refusal.text}, {"reason", refusal.reason}, {"hint", refusal.hint}}));
  }
  return list;
}

Json option_json(const config::Option& option) {
  return Json::object({{"name", option.shown_name()},
                       {"spellings", json_texts(spellings(option))},
                       {"group", option.group},
                       {"help", option.help},
                       {"value", option.value},
                       {"choices", json_texts(choices_of(option))},
                       {"range", range_of(option.range)},
                       {"default", option.is_switch() ? Json() : Json(option.show())},
                       {"positional", option.positional()},
                       {"required", option.required},
                       {"repeats", option.repeats || option.many},
                       {"path", option.offers == config::Offers::files},
                       {"variable", option.flag_only ? Json() : Json(option.variable())},
                       {"refused", refusals_of(option)}});
}

// Options that are hidden because they are refused by name are of interest to programs that write command lines.
Json options_json(const config::OptionSet& set) {
  Json list = Json::array();
  for (const config::Option& option : set.options()) {
    if (!option.hidden || !option.refusals.empty()) list.push_back(option_json(option));
  }
  return list;
}

}  // namespace

Json help_json(const CommandTree& tree, const std::string& about) {
  Json json = Json::object({{"schema", "dtrain.help/1"}, {"version", DTRAIN_VERSION}});
  if (const auto text = topic_text(tree, about)) {
    json["topic"] = about;
    json["text"] = *text;
    return json;
  }
  Json commands = Json::array();
  for (const auto& command : tree.commands) {
    if (!about.empty() && command->path != about && !command->path.starts_with(about + " ")) continue;
    command->options.apply_preset();
    commands.push_back(Json::object({{"path", command->path},
                                     {"sentence", command->sentence},
                                     {"examples", json_texts(command->examples)},
                                     {"options", options_json(command->options)}}));
  }
  json["commands"] = std::move(commands);
  json["common_options"] = options_json(tree.global_options);
  json["topics"] = json_texts(topic_names());
  return json;
}

}  // namespace dtrain::cli
