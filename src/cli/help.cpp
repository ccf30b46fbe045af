#include "help.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include <dtrain/base/text.hpp>

#include "exit_codes.hpp"
#include "sources.hpp"
#include "topics.hpp"

namespace dtrain::cli {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kColumn = 34;

// Wraps `text` after a left column of kColumn characters.
std::string two_columns(std::string_view left, std::string_view text) {
  std::string out = fmt::format("  {:<{}}", left, kColumn - 2);
  std::size_t column = out.size();
  if (left.size() + 3 > kColumn) {
    out += '\n' + std::string(kColumn, ' ');
    column = kColumn;
  }
  for (const std::string& word : split(text, ' ')) {
    if (column + word.size() > kWidth && column > kColumn) {
      out.back() = '\n';
      out += std::string(kColumn, ' ');
      column = kColumn;
    }
    out += word + ' ';
    column += word.size() + 1;
  }
  out.back() = '\n';
  return out;
}

std::string left_of(const config::Option& option) {
  std::string left = option.positional() ? option.flags : (option.letter() ? "" : "    ");
  if (!option.positional()) {
    const std::string name = option.flags.find("--") == std::string::npos ? "" : "--" + option.name();
    if (option.letter()) left = fmt::format("-{}{}", option.letter(), name.empty() ? "" : ", ");
    left += name;
    if (!option.is_switch()) left += " " + option.value;
  }
  return left;
}

std::string right_of(const config::Option& option) {
  const std::string value = option.is_switch() || option.positional() ? "" : option.show();
  if (option.required) return option.help + " (required)";
  return value.empty() ? option.help : fmt::format("{} (default {})", option.help, value);
}

std::string capitalised(std::string text) {
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string option_groups(const config::OptionSet& set, const Reporter& reporter) {
  std::vector<std::string> titles;
  for (const config::Option& option : set.options()) {
    if (std::find(titles.begin(), titles.end(), option.group) == titles.end()) titles.push_back(option.group);
  }
  std::string text;
  for (const std::string& title : titles) {
    text += fmt::format("\n{}\n", reporter.paint_answer(Style::heading, title + ":"));
    for (const config::Option& option : set.options()) {
      if (option.group == title && !option.hidden) text += two_columns(left_of(option), right_of(option));
    }
  }
  return text;
}

std::string usage_of(const Command& command) {
  std::string usage = "dtrain " + command.path, words;
  for (const config::Option& option : command.options.options()) {
    if (!option.positional()) continue;
    if (option.take_words) {
      words = option.required ? fmt::format(" -- {}...", option.flags) : fmt::format(" [-- {}...]", option.flags);
    } else {
      usage += option.required ? " " + option.flags : fmt::format(" [{}]", option.flags);
    }
  }
  return usage + " [options]" + words;
}

std::string command_list(const CommandTree& tree, std::string_view path) {
  std::string text;
  for (const std::string& word : tree.next_words(path)) {
    const std::string whole = path.empty() ? word : fmt::format("{} {}", path, word);
    const Command* command = tree.find(whole);
    const CommandGroup* group = tree.find_group(whole);
    if (group) text += two_columns(word, fmt::format("{}: {}", group->sentence, join(tree.next_words(whole), ", ")));
    if (command) text += two_columns(word, command->sentence);
  }
  return text;
}

std::string short_overview(const CommandTree& tree, std::string_view path) {
  const CommandGroup* group = tree.find_group(path);
  std::string text =
      group ? fmt::format("usage: dtrain {} COMMAND [options]\n{}.\n\n", path, capitalised(group->sentence))
            : "usage: dtrain COMMAND [options]\nTrains image models.\n\n";
  return text + command_list(tree, path) +
         fmt::format("\n`dtrain {}COMMAND --help` explains a command.\n", path.empty() ? "" : std::string(path) + " ");
}

std::string long_overview(const CommandTree& tree, std::string_view path, const Reporter& reporter) {
  std::string text = short_overview(tree, path);
  if (path.empty()) {
    text += fmt::format(
        "\n{}\n  dtrain data prepare shapes --out d\n  dtrain train --network resnet --num-layers 8 "
        "--data-train d/shapes_train.rec --data-val d/shapes_val.rec --num-epochs 4 --model-prefix m/s\n"
        "  dtrain eval m/s --load-epoch 4 --data-val d/shapes_val.rec\n",
        reporter.paint_answer(Style::heading, "Start here:"));
  }
  text += option_groups(tree.global_options, reporter);
  return text + fmt::format("\nTopics (`dtrain help TOPIC`): {}\n", join(topic_names(), ", "));
}

std::string examples_of(const Command& command, const Reporter& reporter) {
  if (command.examples.empty()) return {};
  std::string text = fmt::format("\n{}\n", reporter.paint_answer(Style::heading, "Examples:"));
  for (const std::string& example : command.examples) text += "  " + example + "\n";
  return text;
}

}  // namespace

std::string short_help(const CommandTree& tree, std::string_view path, const Reporter& reporter) {
  Command* command = tree.find(path);
  if (!command) return short_overview(tree, path);
  apply_default_preset(command->options);
  std::string text = fmt::format("usage: {}\n{}.\n", usage_of(*command), capitalised(command->sentence));
  text += option_groups(command->options, reporter);
  return text + fmt::format("\n`dtrain {} --help` says more.\n", command->path);
}

std::string long_help(const CommandTree& tree, std::string_view path, const Reporter& reporter) {
  Command* command = tree.find(path);
  if (!command) return long_overview(tree, path, reporter);
  apply_default_preset(command->options);
  std::string text = fmt::format("usage: {}\n{}.\n", usage_of(*command), capitalised(command->sentence));
  text += examples_of(*command, reporter) + option_groups(command->options, reporter);
  text += option_groups(tree.global_options, reporter);
  text += fmt::format("\n{}\n{}", reporter.paint_answer(Style::heading, "Exit codes:"), exit_codes_topic());
  std::vector<std::string> others;
  for (const std::string& other : command->see_also) others.push_back("dtrain " + other);
  if (!others.empty())
    text += fmt::format("\n{} {}\n", reporter.paint_answer(Style::heading, "See also:"), join(others, ", "));
  return text;
}

}  // namespace dtrain::cli
