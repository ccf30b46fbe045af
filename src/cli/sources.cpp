#include "sources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/base/with_hint.hpp>

#include "config/config_file.hpp"
#include "hints.hpp"

namespace dtrain::cli {
namespace {

// Variables and configuration files are read here, and not by CLI11. CLI11 lets a configuration file win over a
// variable, looks at neither where a word gave the value, so that a bad value would go unnoticed, and keeps no line
// number of a configuration item, which errors and --show-config name. Recipes, weaker than all of these, it does not
// know.

constexpr const char* kProjectFile = "dtrain.toml";

std::optional<Path> user_config() {
  if (const auto base = environment("XDG_CONFIG_HOME"); base && !base->empty())
    return Path(*base) / "dtrain/config.toml";
  if (const auto home = environment("HOME"); home && !home->empty()) return Path(*home) / ".config/dtrain/config.toml";
  return std::nullopt;
}

// A pipe gives its text to one reader: a command that is started again with the same words, as by a queue, would run
// with the defaults.
void refuse_read_pipe(const Path& path) {
  std::error_code gone;
  if (path == "/dev/null" || std::filesystem::is_regular_file(path, gone)) return;
  throw UsageError(fmt::format("--config {}: holds nothing", path.string()),
                   "a pipe can be read once: give a file to a command that is started again, as by a queue");
}

void read_config(std::vector<ConfigFile>& files, config::Source source, const Path& path) {
  std::error_code unreachable;  // a home folder that this user may not read counts as one without configuration
  if (!std::filesystem::exists(path, unreachable)) return;
  const std::string text = read_file(path);
  if (text.empty() && source == config::Source::named_config) refuse_read_pipe(path);
  files.push_back({source, path.string(), config::parse_config(text, path.string())});
}

// Agents start in whatever folder their job is in: its files are those of the command that began the job.
bool is_agent(const Command* command) { return command && command->path == "agent"; }

bool stands_in_words(const CommandTree& tree, std::string_view option) {
  return tree.global_options.find(option)->given.has_value();
}

std::string without_file(std::string_view why) { return fmt::format("{}; goes on without this file", why); }

// They must work where a configuration file is broken: it is left out with a warning then.
bool does_without_files(const CommandTree& tree, const Command* command) {
  if (!command || stands_in_words(tree, "help") || stands_in_words(tree, "help-all") ||
      stands_in_words(tree, "version"))
    return true;
  return is_agent(command) || command->path == "help" || command->path == "completion" || command->path == "stop";
}

// nullopt: none is named, or the variable names one that is not there, of which commands that do without files only
// warn: an exported variable outlives its file. --config was given for this very command.
std::optional<Path> named_config(const CommandTree& tree, const Command* command, std::vector<std::string>& warnings) {
  const config::Option& named = *tree.global_options.find("config");
  if (named.given && trim(*named.given).empty()) {
    throw UsageError("--config is empty", "give the path of a configuration file, or leave --config out");
  }
  const auto variable = is_agent(command) ? std::nullopt : environment(named.variable());
  const std::string name = named.given ? *named.given : variable.value_or("");
  if (name.empty()) return std::nullopt;
  if (std::error_code unreachable; std::filesystem::exists(name, unreachable)) return name;
  const std::string missing = fmt::format("{} {}: no such file", named.given ? "--config" : named.variable(), name);
  if (named.given || !does_without_files(tree, command))
    throw UsageError(missing, "give the path of a configuration file");
  warnings.push_back(without_file(missing));
  return std::nullopt;
}

// From the weakest to the strongest. The user trusts the file that --config names, also where it is ./dtrain.toml.
std::vector<std::pair<config::Source, Path>> config_paths(const CommandTree& tree, const Command* command) {
  std::vector<std::pair<config::Source, Path>> paths;
  if (auto user = user_config()) paths.emplace_back(config::Source::user_config, std::move(*user));
  const std::optional<Path>& named = tree.config_file;
  std::error_code not_there;
  const bool is_project = named && std::filesystem::equivalent(*named, kProjectFile, not_there);
  if (!is_project && !is_agent(command)) paths.emplace_back(config::Source::project_config, kProjectFile);
  if (named) paths.emplace_back(config::Source::named_config, *named);
  return paths;
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

void apply_entry(config::Option& option, const ConfigFile& file, const config::ConfigEntry& entry) {
  const std::string place = fmt::format("{}:{}: {}", file.name, entry.line, entry.key);
  set_value(
      option, [&] { return text_of(entry, option); }, file.source, place);
}

void apply_file(config::Option& option, const ConfigFile& file, const std::string& section) {
  for (const config::ConfigEntry& entry : file.entries) {
    if (entry.section == section && entry.key == option.name()) apply_entry(option, file, entry);
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

// No option of a file: one of the command line, or none at all.
[[noreturn]] void refuse_key(const CommandTree& tree, const ConfigFile& file, const config::ConfigEntry& entry,
                             const config::OptionSet& set) {
  const config::Option* const of_line = set.find(entry.key);
  if (of_line && !of_line->hidden) {
    const std::string name = of_line->shown_name();
    refuse(file, entry, fmt::format("{}: {} is read from the command line only", entry.key, name),
           fmt::format("remove it from the file, and give {} with the command", name));
  }
  refuse(file, entry, fmt::format("unknown option '{}'", entry.key), hint_of_key(tree, entry, set));
}

std::vector<std::string> section_names(const CommandTree& tree) {
  std::vector<std::string> sections;
  for (const auto& command : tree.commands) sections.push_back(section_of(*command));
  return sections;
}

bool is_known_section(const CommandTree& tree, const std::string& section) {
  return section.empty() || std::ranges::count(section_names(tree), section) > 0;
}

// Apart from misspelt names, a table may have the name of a group of commands ([cluster]), lack it ([up]), or have more
// than the name ([dtrain.train], [training]).
std::string hint_of_section(const std::string& word, const std::vector<std::string>& sections) {
  std::vector<std::string> meant;
  if (const auto near = nearest_name(word, sections)) meant.push_back(*near);
  std::ranges::copy_if(sections, std::back_inserter(meant), [&](const std::string& section) {
    const bool is_part = section.starts_with(word + ".") || section.ends_with("." + word);
    const bool is_longer = word.starts_with(section) || word.ends_with("." + section);
    return (is_part || is_longer) && !std::ranges::count(meant, section);
  });
  if (meant.empty())
    return "tables have the names of commands, such as [train]; `dtrain help configuration` shows a file";
  constexpr std::size_t kMostMeant = 8;
  for (std::string& section : meant) section = fmt::format("[{}]", section);
  return fmt::format("did you mean {}{}?", meant.size() > 1 ? "one of " : "", join_first(meant, kMostMeant, ", "));
}

Command* command_of_section(const CommandTree& tree, const std::string& section) {
  const auto found =
      std::ranges::find_if(tree.commands, [&](const auto& command) { return section_of(*command) == section; });
  return found == tree.commands.end() ? nullptr : found->get();
}

void check_entry(const CommandTree& tree, const ConfigFile& file, const config::ConfigEntry& entry) {
  const Command* const command = command_of_section(tree, entry.section);
  const config::OptionSet* const set = entry.section.empty() ? &tree.global_options
                                       : command             ? &command->options
                                                             : nullptr;
  if (!set) {
    refuse(file, entry, fmt::format("unknown section '{}'", entry.section),
           hint_of_section(entry.section, section_names(tree)));
  }
  const config::Option* option = key_of(*set, entry.key);
  if (!option) refuse_key(tree, file, entry, *set);
  if (option->not_from_project && file.source == config::Source::project_config) refuse_from_project(file, entry);
  for (const config::ConfigEntry& other : file.entries) {  // "lr_factor" and "lr-factor" are two keys of TOML
    if (&other == &entry) break;
    if (other.section != entry.section || other.key != entry.key) continue;
    refuse(file, entry, fmt::format("'{}' is set twice, first in line {}", entry.key, other.line), "keep one of them");
  }
}

// Whether an error there may change what the command does. A section of no command was meant for some command, and only
// the user knows for which: to train for hours with the defaults is worse than to stop.
bool concerns(const CommandTree& tree, const Command* command, const config::ConfigEntry& entry) {
  if (!is_known_section(tree, entry.section)) return !does_without_files(tree, command);
  return entry.section.empty() || (command && entry.section == section_of(*command));
}

std::string warning_of(const Error& error) { return with_hint(error); }

// What is wrong in the sections of other commands is a warning: a job that runs is managed by several commands. Their
// values are tried on another tree, for help shows the defaults of this one.
void check_entries(const CommandTree& tree, const Command* command, const ConfigFile& file,
                   std::vector<std::string>& warnings) {
  std::optional<CommandTree> trial;
  for (const config::ConfigEntry& entry : file.entries) {
    try {
      check_entry(tree, file, entry);
      if (concerns(tree, command, entry) || is_agent(command)) continue;
      if (!trial) trial.emplace();
      apply_entry(*command_of_section(*trial, entry.section)->options.find(entry.key), file, entry);
    } catch (const Error& error) {
      if (concerns(tree, command, entry)) throw;
      warnings.push_back(warning_of(error));
    }
  }
}

std::vector<ConfigFile> read_config_files(const CommandTree& tree, const Command* command,
                                          std::vector<std::string>& warnings) {
  std::vector<ConfigFile> files;
  for (const auto& [source, path] : config_paths(tree, command)) {
    const std::size_t before = files.size();
    try {
      read_config(files, source, path);
      if (files.size() > before) check_entries(tree, command, files.back(), warnings);
    } catch (const Error& error) {
      if (!does_without_files(tree, command)) throw;
      files.resize(before);
      warnings.push_back(without_file(error.what()));
    }
  }
  return files;
}

void apply_globals(CommandTree& tree, const std::vector<ConfigFile>& files) {
  for (config::Option& option : tree.global_options.options()) apply_sources(option, files, "");
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

}  // namespace

std::vector<std::string> resolve_globals(CommandTree& tree, const Command* command) {
  std::vector<std::string> warnings;
  tree.config_file = named_config(tree, command, warnings);
  tree.config_files = read_config_files(tree, command, warnings);
  try {
    apply_globals(tree, tree.config_files);
  } catch (const UsageError& error) {
    if (!does_without_files(tree, command)) throw;
    warnings.emplace_back(error.what());
    apply_globals(tree, {});
  }
  return warnings;
}

// Reads a second name of an option. The name from the weaker source counts as not given. Two flags, or two entries of
// one file, must agree. Of two variables the second name decides: a cluster sets some without the user's doing.
static void apply_second_name(config::Option& option, config::Option& first, const std::vector<ConfigFile>& files,
                              const std::string& section) {
  const std::string before = first.show();
  apply_sources(option, files, section);
  if (option.source == config::Source::fallback && first.source == option.source) return;
  const bool may_differ = option.source != first.source || option.source == config::Source::environment;
  if (!may_differ && first.show() != before) {
    throw UsageError(fmt::format("{} and {}: two names of one setting, with other values", config::with_origin(first),
                                 config::with_origin(option)),
                     "leave one of them out");
  }
  if (option.source >= first.source) {
    first.origin = option.origin;
    return;
  }
  apply_sources(first, files, section);
  option.source = config::Source::fallback;
  option.origin = first.origin;
}

void resolve(const CommandTree& tree, Command& command) {
  const std::vector<ConfigFile>& files = tree.config_files;
  const std::string section = section_of(command);
  config::OptionSet& set = command.options;
  for (const std::string& chooser : set.preset_choosers()) apply_sources(*set.find(chooser), files, section);
  set.apply_preset();
  for (config::Option& option : set.options()) {
    if (option.same_as.empty()) {
      apply_sources(option, files, section);
    } else {
      apply_second_name(option, *set.find(option.same_as), files, section);
    }
  }
  set.settle();
  if (!tree.show_config) check_required(command);
}

}  // namespace dtrain::cli
