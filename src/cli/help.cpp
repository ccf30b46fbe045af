#include "help.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "exit_codes.hpp"
#include "sources.hpp"
#include "topics.hpp"

namespace dtrain::cli {
namespace {

// CLI11's formatter lays out the options of one CLI::App. These pages, the manual pages and the completions are made
// from the command tree instead, which has what an App lacks: defaults that a recipe replaces, first options, topics.

constexpr std::size_t kNarrowest = 60, kWidest = 120, kWithoutTerminal = 100;
constexpr std::size_t kCodeColumn = 7;  // behind exit codes

// Columns of the terminal, or what COLUMNS says.
std::size_t columns() {
  const auto given = parse_integer(environment("COLUMNS").value_or(""));
  winsize size{};
  if (given && *given > 0) return static_cast<std::size_t>(*given);
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kWithoutTerminal;
}

std::size_t text_width() { return std::clamp(columns(), kNarrowest, kWidest); }

// Choices with a new line behind a bar where they are wider than the terminal.
std::string folded(std::string_view choices, std::size_t width) {
  const std::size_t bar = choices.size() > width ? choices.rfind('|', width - 1) : choices.npos;
  if (bar == choices.npos) return std::string(choices);
  return fmt::format("{}\n      {}", choices.substr(0, bar + 1), choices.substr(bar + 1));
}

// A command line, with a backslash and a new line before options where it is wider than the terminal.
std::string command_line(std::string_view line) {
  const std::size_t width = text_width();
  std::string out = "  ";
  std::size_t column = out.size();
  for (std::size_t begin = 0, end = 0; begin < line.size(); begin = end) {
    end = std::min(line.find(" --", begin + 1), line.size());
    if (column + (end - begin) + 2 > width && begin > 0) {
      out += " \\\n   ";
      column = 3;
    }
    out += line.substr(begin, end - begin);
    column += end - begin;
  }
  return out + "\n";
}

// Words with a new line where they are wider than the terminal.
std::string paragraph(std::string_view text) {
  const std::size_t width = text_width();
  std::string out;
  std::size_t column = 0;
  for (const std::string& word : split(text, ' ')) {
    if (column > 0 && column + word.size() > width) {
      out.back() = '\n';
      column = 0;
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
  const std::string range = option.shown_range();
  const std::string described = option.described_default();
  std::vector<std::string> notes;
  if (!range.empty()) notes.push_back(range);
  if (option.required) {
    notes.push_back(option.required_except.empty() ? "required" : "required, except " + option.required_except);
  } else if (!described.empty()) {
    notes.push_back("default " + described);
  } else if (!value.empty()) {
    notes.push_back("default " + value);
  }
  const std::string help =
      option.required || described.empty() ? option.help : option.help.substr(0, option.help.rfind(" (default "));
  return notes.empty() ? help : fmt::format("{} ({})", help, join(notes, ", "));
}

std::string capitalised(std::string text) {
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::vector<std::string> group_titles(const config::OptionSet& set) {
  std::vector<std::string> titles;
  for (const config::Option& option : set.options()) {
    if (std::find(titles.begin(), titles.end(), option.group) == titles.end()) titles.push_back(option.group);
  }
  return titles;
}

std::string option_groups(const config::OptionSet& set, const Reporter& reporter) {
  std::string text;
  for (const std::string& title : group_titles(set)) {
    text += fmt::format("\n{}\n", reporter.paint_answer(Style::heading, title + ":"));
    for (const config::Option& option : set.options()) {
      if (option.group == title && !option.hidden) text += two_columns(left_of(option), right_of(option));
    }
  }
  return text;
}

bool is_first(const Command& command, const config::Option& option) {
  const auto& names = command.first_options;
  return option.positional() || std::find(names.begin(), names.end(), option.name()) != names.end();
}

// Positionals, then the first options in the order in which the command names them.
std::string first_options(Command& command, const Reporter& reporter) {
  std::string text = fmt::format("\n{}\n", reporter.paint_answer(Style::heading, "First options:"));
  for (const config::Option& option : command.options.options()) {
    if (option.positional() && !option.hidden) text += two_columns(left_of(option), right_of(option));
  }
  for (const std::string& name : command.first_options) {
    const config::Option* option = command.options.find(name);
    DTRAIN_CHECK(option, "first options are options of their command");
    text += two_columns(left_of(*option), right_of(*option));
  }
  return text;
}

// The names of the options that first_options() leaves out, by group.
std::string names_by_group(const Command& command, const config::OptionSet& globals, const Reporter& reporter) {
  std::string text = fmt::format("\n{}\n", reporter.paint_answer(Style::heading, "More options:"));
  for (const config::OptionSet* set : {&command.options, &globals}) {
    for (const std::string& title : group_titles(*set)) {
      std::vector<std::string> names;
      for (const config::Option& option : set->options()) {
        if (option.group == title && !option.hidden && !is_first(command, option)) names.push_back(option.shown_name());
      }
      if (!names.empty()) text += two_columns(title, join(names, " "));
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
      const std::string name = option.flags + (option.many ? "..." : "");
      usage += option.required ? " " + name : fmt::format(" [{}]", name);
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

std::string commands_of(const CommandTree& tree, std::string_view path) {
  const CommandGroup* group = tree.find_group(path);
  std::string text =
      group ? fmt::format("usage: dtrain {} COMMAND [options]\n{}.\n\n", path, capitalised(group->sentence))
            : "usage: dtrain COMMAND [options]\nTrain image models; hosts can join and leave during training.\n\n";
  return text + command_list(tree, path) +
         fmt::format("\n`dtrain {}COMMAND --help` shows the help of a command.\n",
                     path.empty() ? "" : std::string(path) + " ");
}

std::string long_overview(const CommandTree& tree, std::string_view path, const Reporter& reporter) {
  std::string text = commands_of(tree, path);
  if (path.empty()) {
    text += fmt::format("\n{}\n", reporter.paint_answer(Style::heading, "Start here:"));
    for (const std::string& command : first_commands()) text += command_line(command);
  }
  text += option_groups(tree.global_options, reporter);
  return text + "\n" + paragraph(fmt::format("Topics (`dtrain help TOPIC`): {}", join(topic_names(), ", ")));
}

std::string examples_of(const Command& command, const Reporter& reporter) {
  if (command.examples.empty()) return {};
  std::string text = fmt::format("\n{}\n", reporter.paint_answer(Style::heading, "Examples:"));
  for (const std::string& example : command.examples) text += command_line(example);
  return text;
}

std::string heading_of(const Command& command) {
  return fmt::format("usage: {}\n{}", usage_of(command), paragraph(capitalised(command.sentence) + "."));
}

std::string see_also_of(const Command& command, const Reporter& reporter) {
  std::vector<std::string> others;
  for (const std::string& other : command.see_also) others.push_back("dtrain " + other);
  if (others.empty()) return {};
  return fmt::format("\n{}\n{}", reporter.paint_answer(Style::heading, "See also:"), paragraph(join(others, ", ")));
}

}  // namespace

std::string two_columns(std::string_view left, std::string_view text, std::size_t indent) {
  const std::size_t width = text_width();
  std::string out = fmt::format("  {:<{}}", folded(left, width - 2), indent - 2);
  std::size_t column = out.size();
  if (left.size() + 3 > indent) {
    out += '\n' + std::string(indent, ' ');
    column = indent;
  }
  for (const std::string& word : split(text, ' ')) {
    if (column + word.size() > width && column > indent) {
      out.back() = '\n';
      out += std::string(indent, ' ');
      column = indent;
    }
    out += word + ' ';
    column += word.size() + 1;
  }
  out.back() = '\n';
  return out;
}

std::vector<std::string> first_commands() {
  return {"dtrain data prepare shapes --out d",
          "dtrain train --network resnet --num-layers 8 --data-train d/shapes_train.rec --data-val d/shapes_val.rec "
          "--batch-size 32 --lr 0.1 --lr-schedule one-cycle --num-epochs 4 --model-prefix m/shapes",
          "dtrain eval m/shapes --load-epoch 4 --data-val d/shapes_val.rec"};
}

std::string overview(const CommandTree& tree, std::string_view path) { return commands_of(tree, path); }

std::string short_help(const CommandTree& tree, std::string_view path, const Reporter& reporter) {
  Command* command = tree.find(path);
  if (!command || command->first_options.empty()) return long_help(tree, path, reporter);
  command->options.apply_preset();
  std::string text = heading_of(*command) + first_options(*command, reporter) + examples_of(*command, reporter);
  text += names_by_group(*command, tree.global_options, reporter);
  text += fmt::format("\n`dtrain {} --help-all` explains every option.\n", command->path);
  return text + see_also_of(*command, reporter);
}

std::string long_help(const CommandTree& tree, std::string_view path, const Reporter& reporter) {
  Command* command = tree.find(path);
  if (!command) return long_overview(tree, path, reporter);
  command->options.apply_preset();
  std::string text = heading_of(*command) + examples_of(*command, reporter);
  text += option_groups(command->options, reporter) + option_groups(tree.global_options, reporter);
  text += fmt::format("\n{}\n", reporter.paint_answer(Style::heading, "Exit codes:"));
  for (const ExitCodeMeaning& row : exit_code_table())
    text += two_columns(fmt::format("{:>3}", row.code), row.meaning, kCodeColumn);
  if (path == "launch") text += two_columns("any", kCodeOfLaunch, kCodeColumn);
  return text + see_also_of(*command, reporter);
}

}  // namespace dtrain::cli
