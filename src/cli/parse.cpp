#include "parse.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include <dtrain/base/text.hpp>

namespace dtrain::cli {
namespace {

// Values stay texts here: conversion and checks are the options' own, so that they refuse alike wherever a value came
// from.
void bind_option(CLI::App& app, config::Option& option) {
  if (option.take_words) return;  // they never come this way
  if (option.is_switch()) {
    app.add_flag_callback(option.flags, [&option] { option.given = "true"; });
    return;
  }
  const auto take = [&option](const CLI::results_t& results) {
    option.given = option.many      ? join(results, option.between_words)
                   : option.repeats ? join(results, std::string(1, config::kBetweenRepeated))
                                    : results.back();
    return true;
  };
  CLI::Option* added = app.add_option(option.flags, take, option.help);
  if (option.many) {
    added->expected(1, CLI::detail::expected_max_vector_size)->allow_extra_args();
  } else if (option.repeats) {
    added->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  } else {
    added->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
}

void bind_options(CLI::App& app, config::OptionSet& set) {
  for (config::Option& option : set.options()) bind_option(app, option);
}

// Only the branch that the words name is built: the tree grows, the program's start must not.
void add_branch(CLI::App& root, const CommandTree& tree, const std::string& path) {
  CLI::App* app = &root;
  for (const std::string& word : split(path, ' ')) {
    app = app->add_subcommand(word);
    app->set_help_flag();
    app->fallthrough();
  }
  if (Command* command = tree.find(path)) bind_options(*app, command->options);
}

void hand_over_rest(Command& command, const std::vector<std::string>& rest) {
  for (config::Option& option : command.options.options()) {
    if (!option.take_words || rest.empty()) continue;
    option.take_words(rest);
    option.given = join(rest, " ");
  }
}

}  // namespace

Command* parse(CommandTree& tree, const Arguments& arguments) {
  CLI::App root;
  root.set_help_flag();
  bind_options(root, tree.global_options);
  if (!arguments.path.empty()) add_branch(root, tree, arguments.path);
  std::vector<std::string> reversed(arguments.words.rbegin(), arguments.words.rend());
  try {
    root.parse(reversed);
  } catch (const CLI::ExtrasError& error) {
    throw UsageError(std::string(error.what()), "put quotes around a value with spaces; --help lists the arguments");
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  Command* command = tree.find(arguments.path);
  if (command) hand_over_rest(*command, arguments.rest);
  return command;
}

}  // namespace dtrain::cli
