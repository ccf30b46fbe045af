#include "topics.hpp"

#include <fmt/format.h>

#include <map>

#include "exit_codes.hpp"

namespace dtrain::cli {
namespace {

constexpr std::string_view kEnvironment =
    R"(Every option of every command is also read from a variable: DTRAIN_ and the option's name in capitals, with _ for -.
A flag wins over a variable, a variable over a file (`dtrain help configuration`).

Others that are read:
  NO_COLOR          not empty: no colour
  TERM              dumb: neither colour nor a progress bar
  XDG_CONFIG_HOME   folder of dtrain/config.toml; without it $HOME/.config

Variables of the options, with the commands that read them:
)";

constexpr std::string_view kConfiguration =
    R"(A value comes from the first of these that has one:
  1. a flag                                      --lr 0.1
  2. a variable                                  DTRAIN_LR=0.1
  3. a variable of a cluster's set-up            DEEPLEARNING_WORKERS_PATH=hosts
  4. ./dtrain.toml                               the project's
  5. $XDG_CONFIG_HOME/dtrain/config.toml         the user's; $HOME/.config where XDG_CONFIG_HOME is not set
  6. the recipe                                  train --recipe imagenet
  7. the default

A file holds `key = value` lines, a section for each command, and # comments. Keys are long options without dashes;
keys before the first section are options of every command. Values with blanks or commas stand in quotes.

  color = "never"
  [train]
  lr = 0.1
  lr-step-epochs = "30,60"
  [data.prepare]
  out = "d"

A bad value or an unknown key is refused with its place. `dtrain COMMAND --show-config` prints where each value came from.
)";

std::string environment_topic(const CommandTree& tree) {
  std::map<std::string, std::vector<std::string>> readers;
  const auto collect = [&](const OptionSet& set, const std::string& who) {
    for (const Option& option : set.options()) {
      if (!option.flag_only) readers[option.variable()].push_back(who);
      if (!option.legacy_variable.empty()) readers[option.legacy_variable].push_back(who);
    }
  };
  collect(tree.global_options, "every command");
  for (const auto& command : tree.commands) collect(command->options, command->path);
  std::string text(kEnvironment);
  for (const auto& [variable, commands] : readers)
    text += fmt::format("  {:<32}{}\n", variable, fmt::join(commands, ", "));
  return text;
}

}  // namespace

std::vector<std::string> topic_names() { return {"exit-codes", "environment", "configuration"}; }

std::string exit_codes_topic() {
  std::string text;
  for (const ExitCodeMeaning& row : exit_code_table()) text += fmt::format("  {:>3}  {}\n", row.code, row.meaning);
  return text;
}

std::optional<std::string> topic_text(const CommandTree& tree, std::string_view name) {
  if (name == "exit-codes") return exit_codes_topic();
  if (name == "environment") return environment_topic(tree);
  if (name == "configuration") return std::string(kConfiguration);
  return std::nullopt;
}

}  // namespace dtrain::cli
