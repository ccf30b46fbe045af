#include "sources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/text.hpp>

#include "config/config_file.hpp"
#include "hints.hpp"

namespace dtrain::cli {
namespace {

// Variables and configuration files are read here, and not by CLI11. CLI11 lets a configuration file win over a
// variable, looks at neither where a word gave the value, so that a bad value would go unnoticed, and keeps no line
// number of a configuration item, which errors and --show-config name. Recipes, weaker than all of these, it does not
// know.

constexpr const char* kProjectFile = "dtrain.toml";

struct ConfigFile {
  config::Source source;
  std::string name;
  std::vector<config::ConfigEntry> entries;
};

std::optional<Path> user_config() {
  if (const auto base = environment("XDG_CONFIG_HOME"); base && !base->empty())
    return Path(*base) / "dtrain/config.toml";
  if (const auto home = environment("HOME"); home && !home->empty()) return Path(*home) / ".config/dtrain/config.toml";
  return std::nullopt;
}

void read_config(std::vector<ConfigFile>& files, config::Source source, const Path& path) {
  std::error_code unreachable;  // a home folder that this user may not read counts as one without configuration
  if (!std::filesystem::exists(path, unreachable)) return;
  files.push_back({source, path.string(), config::parse_config(read_file(path), path.string())});
}

// From the weakest to the strongest. The user trusts the file that --config names, also where it is ./dtrain.toml.
std::vector<ConfigFile> config_files(const CommandTree& tree) {
  std::vector<ConfigFile> files;
  if (const auto user = user_config()) read_config(files, config::Source::user_config, *user);
  const std::optional<Path>& named = tree.config_file;
  std::error_code not_there;
  const bool is_project = named && std::filesystem::equivalent(*named, kProjectFile, not_there);
  if (!is_project) read_config(files, config::Source::project_config, kProjectFile);
  if (named && !std::filesystem::exists(*named)) {
    throw UsageError(fmt::format("--config {}: no such file", named->string()),
                     "give the path of a configuration file");
  }
  if (named) read_config(files, config::Source::named_config, *named);
  return files;
}

std::string section_of(const Command& command) {
  std::string name = command.path;
  for (char& c : name) c = c == ' ' ? '.' : c;
  return name;
}

// `text` may refuse too.
void set_value(config::Option& option, const std::function<std::string()>& text, config::Source source,
               const std::string& origin) {
  const bool in_other_words = option.set_legacy && origin == option.legacy_variable;
  try {
    (in_other_words ? option.set_legacy : option.set)(text());
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", origin, error.what()), error.hint());
  }
  option.source = source;
  option.origin = origin;
}

void set_value(config::Option& option, const std::string& text, config::Source source, const std::string& origin) {
  set_value(
      option, [&text] { return text; }, source, origin);
}

// Several values in the one text that sets the option.
std::string text_of(const config::ConfigEntry& entry, const config::Option& option) {
  if (!entry.is_list) return entry.values.front();
  if (!option.comma_list) {
    throw UsageError("takes one value, not a list", "write the value without brackets");
  }
  return join(entry.values, ",");
}

void apply_file(config::Option& option, const ConfigFile& file, const std::string& section) {
  for (const config::ConfigEntry& entry : file.entries) {
    if (entry.section != section || entry.key != option.name()) continue;
    const std::string place = fmt::format("{}:{}: {}", file.name, entry.line, entry.key);
    set_value(
        option, [&] { return text_of(entry, option); }, file.source, place);
  }
}

void apply_sources(config::Option& option, const std::vector<ConfigFile>& files, const std::string& section) {
  if (!option.flag_only) {
    for (const ConfigFile& file : files) apply_file(option, file, section);
    if (!option.legacy_variable.empty()) {
      const auto value = environment(option.legacy_variable);
      if (value && !value->empty()) set_value(option, *value, config::Source::environment, option.legacy_variable);
    }
    if (const auto value = environment(option.variable())) {
      set_value(option, *value, config::Source::environment, option.variable());
    }
  }
  if (option.given) set_value(option, *option.given, config::Source::flag, option.shown_name());
}

[[noreturn]] void refuse(const ConfigFile& file, const config::ConfigEntry& entry, const std::string& what,
                         const std::string& hint) {
  throw UsageError(fmt::format("{}:{}: {}", file.name, entry.line, what), hint);
}

std::string hint_of_nearest(const std::string& word, const std::vector<std::string>& known) {
  const auto near = nearest_name(word, known);
  return near ? fmt::format("did you mean '{}'?", *near) : std::string();
}

std::vector<std::string> config_keys(const config::OptionSet& set) {
  std::vector<std::string> keys;
  for (const config::Option& option : set.options()) {
    if (!option.flag_only) keys.push_back(option.name());
  }
  return keys;
}

// The file lies in the current folder, which may have come from elsewhere with everything in it.
[[noreturn]] void refuse_from_project(const ConfigFile& file, const config::ConfigEntry& entry) {
  const auto user = user_config();
  throw UsageError(
      fmt::format("{}:{}: {}: the file of a folder must not set it, because it runs commands, chooses machines, gives "
                  "rights or lifts protection",
                  file.name, entry.line, entry.key),
      fmt::format("move it to {}, give --{}, or trust this file with --config {}",
                  user ? user->string() : "~/.config/dtrain/config.toml", entry.key, file.name));
}

const config::Option* key_of(const config::OptionSet& set, const std::string& name) {
  const config::Option* option = set.find(name);
  return option && !option->flag_only ? option : nullptr;
}

// What stands in no section is an option of every command.
std::string hint_of_key(const CommandTree& tree, const config::ConfigEntry& entry, const config::OptionSet& set) {
  std::vector<std::string> sections;
  for (const auto& command : tree.commands) {
    if (entry.section.empty() && key_of(command->options, entry.key)) sections.push_back(section_of(*command));
  }
  if (sections.empty()) return hint_of_option(entry.key, config_keys(set), "");
  const bool of_train = std::ranges::find(sections, "train") != sections.end();
  return fmt::format("put it below a line {}[{}]", sections.size() > 1 ? "that names its command, such as " : "",
                     of_train ? "train" : sections.front());
}

void check_names(const CommandTree& tree, const ConfigFile& file) {
  std::vector<std::string> sections;
  for (const auto& command : tree.commands) sections.push_back(section_of(*command));
  for (const config::ConfigEntry& entry : file.entries) {
    const config::OptionSet* set = entry.section.empty() ? &tree.global_options : nullptr;
    for (const auto& command : tree.commands) {
      if (section_of(*command) == entry.section) set = &command->options;
    }
    if (!set) {
      refuse(file, entry, fmt::format("unknown section '{}'", entry.section), hint_of_nearest(entry.section, sections));
    }
    const config::Option* option = key_of(*set, entry.key);
    if (!option) refuse(file, entry, fmt::format("unknown option '{}'", entry.key), hint_of_key(tree, entry, *set));
    if (option->not_from_project && file.source == config::Source::project_config) refuse_from_project(file, entry);
  }
}

void check_required(const Command& command) {
  for (const config::Option& option : command.options.options()) {
    if (!option.required) continue;
    const bool missing = option.source == config::Source::fallback;
    if (!missing && !trim(option.show()).empty()) continue;
    throw UsageError(fmt::format("{}: {} {}", command.path, option.shown_name(), missing ? "is missing" : "is empty"),
                     command.examples.empty() ? "" : "for example: " + command.examples.front());
  }
}

std::string plain_origin(const config::Option& option) {
  const std::string tail = ": " + option.name();
  return option.origin.ends_with(tail) ? option.origin.substr(0, option.origin.size() - tail.size()) : option.origin;
}

}  // namespace

void resolve_globals(CommandTree& tree) {
  const config::Option& named = *tree.global_options.find("config");
  if (named.given) named.set(*named.given);
  const auto files = config_files(tree);
  for (const ConfigFile& file : files) check_names(tree, file);
  for (config::Option& option : tree.global_options.options()) apply_sources(option, files, "");
}

void resolve(const CommandTree& tree, Command& command) {
  const auto files = config_files(tree);
  const std::string section = section_of(command);
  config::OptionSet& set = command.options;
  for (const std::string& chooser : set.preset_choosers()) apply_sources(*set.find(chooser), files, section);
  set.apply_preset();
  for (config::Option& option : set.options()) apply_sources(option, files, section);
  if (!tree.show_config) check_required(command);
}

void show_config(const CommandTree& tree, const Command& command, Reporter& reporter) {
  Json values = Json::array();
  for (const config::OptionSet* set : {&command.options, &tree.global_options}) {
    for (const config::Option& option : set->options()) {
      if (option.flag_only) continue;
      values.push_back(Json::object({{"name", option.name()},
                                     {"value", option.show()},
                                     {"origin", plain_origin(option)},
                                     {"env", option.variable()}}));
      if (!reporter.json())
        reporter.answer(fmt::format("{} = {}  ({})", option.name(), option.show(), plain_origin(option)));
    }
  }
  if (reporter.json()) {
    reporter.answer_json(Json::object({{"schema", "dtrain.config/1"}, {"command", command.path}, {"values", values}}));
  }
}

}  // namespace dtrain::cli
