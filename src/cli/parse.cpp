#include "parse.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <span>

#include <dtrain/base/text.hpp>

#include "hints.hpp"

namespace dtrain::cli {
namespace {

using Words = std::vector<std::string>;

// CLI11 takes the word after `--name=` for the value. This stands for the empty value until CLI11 is done; no word of a
// command line holds it.
constexpr char kEmptyValue = '\0';

Words with_empty_values_marked(Words words) {
  for (std::string& word : words) {
    if (word.starts_with("--") && word.find('=') == word.size() - 1) word += kEmptyValue;
  }
  return words;
}

Words with_empty_values(Words words) {
  for (std::string& word : words) {
    if (word.ends_with(kEmptyValue)) word.pop_back();
  }
  return words;
}

// Around the first `--`, which is never the value of an option.
struct Halves {
  Words before, after;
  bool has_mark = false;
};

Halves halves_of(const Words& words) {
  const auto mark = std::ranges::find(words, "--");
  if (mark == words.end()) return {.before = with_empty_values_marked(words), .after = {}};
  return {
      .before = with_empty_values_marked({words.begin(), mark}), .after = {mark + 1, words.end()}, .has_mark = true};
}

// A word with two dashes is far more often an option whose predecessor lacks its value than a value.
void refuse_option_as_value(const config::Option& option, const std::string& value, const Words& words) {
  if (option.positional() || !value.starts_with("--")) return;
  const auto gives_it = [&](const std::string& word) { return word.starts_with("--") && word.ends_with("=" + value); };
  if (std::ranges::any_of(words, gives_it)) return;
  throw UsageError(fmt::format("{}: needs a value ({})", option.shown_name(), option.value));
}

// "--max-restarts" also as "--max_restarts", as scripts for torchrun write it.
std::string with_underscores(const std::string& flags) {
  std::string all = flags;
  for (std::string name : split(flags, ',')) {
    if (!name.starts_with("--") || name.find('-', 2) == std::string::npos) continue;
    std::replace(name.begin() + 2, name.end(), '-', '_');
    all += "," + name;
  }
  return all;
}

// CLI11 hands texts over, and converts and checks none of them: a variable, a configuration file, a recipe and the tags
// of a cluster set the same options, and a value must be refused in the same words wherever it stood. So conversion and
// validators are the options' own (config/option_set.hpp).
void bind_option(CLI::App& app, config::Option& option, const Words& words) {
  if (option.take_words) return;  // they are what CLI11 leaves over
  if (option.is_switch()) {
    app.add_flag_callback(with_underscores(option.flags), [&option] { option.given = "true"; })
        ->disable_flag_override();
    return;
  }
  const auto take = [&option, &words](const CLI::results_t& results) {
    const Words values = with_empty_values(results);
    for (const std::string& value : values) refuse_option_as_value(option, value, words);
    option.given = option.many      ? join(values, option.between_words)
                   : option.repeats ? join(values, std::string(1, config::kBetweenRepeated))
                                    : values.back();
    return true;
  };
  CLI::Option* added = app.add_option(with_underscores(option.flags), take, option.help);
  if (option.many) {
    added->expected(1, CLI::detail::expected_max_vector_size)->allow_extra_args();
    return;
  }
  if (option.without_value) added->expected(0, 1)->default_str(*option.without_value);
  added->multi_option_policy(option.repeats ? CLI::MultiOptionPolicy::TakeAll : CLI::MultiOptionPolicy::TakeLast);
}

void bind_options(CLI::App& app, config::OptionSet& set, const Words& words) {
  for (config::Option& option : set.options()) bind_option(app, option, words);
}

// CLI11 names the option at the beginning of its message.
[[noreturn]] void refuse_number_of_values(const std::string& message,
                                          std::initializer_list<const config::OptionSet*> sets) {
  const std::string name = message.substr(0, message.find_first_of(": "));
  for (const config::OptionSet* set : sets) {
    for (const config::Option& option : set->options()) {
      if (option.shown_name() != name && option.name() != name) continue;
      if (option.is_switch())
        throw UsageError(option.shown_name() + ": takes no value", "give it alone, or " + hint_without_switch(option));
      throw UsageError(fmt::format("{}: needs a value ({})", option.shown_name(), option.value));
    }
  }
  throw UsageError(message);
}

void run(CLI::App& app, const Words& words, std::initializer_list<const config::OptionSet*> sets) {
  try {
    app.parse(Words(words.rbegin(), words.rend()));
  } catch (const CLI::ArgumentMismatch& error) {
    refuse_number_of_values(error.what(), sets);
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
}

bool is_value(const config::OptionSet& set, const std::string& word) {
  return std::ranges::any_of(set.options(), [&](const config::Option& option) { return option.given == word; });
}

bool has_long_option(const config::OptionSet& set, const std::string& name) {
  const config::Option* const option = set.find(name);
  return option && !option->hidden && option->shown_name() == "--" + name;
}

// Refuses a long option with one dash, such as `-num-epochs`, of which CLI11 made -n with the value "um-epochs", and
// those of other programs, such as mpirun's `-np`.
void refuse_single_dash(const CommandTree& tree, const std::string& path, std::span<const std::string> words) {
  const Command* const command = tree.find(path);
  for (const std::string& word : words) {
    if (word == "--") return;
    const std::string name = word.substr(std::min<std::size_t>(word.size(), 1), word.find('=') - 1);
    if (!word.starts_with('-') || word.starts_with("--") || name.size() < 2) continue;
    if (is_value(tree.global_options, word) || (command && is_value(command->options, word))) continue;
    if (has_long_option(tree.global_options, name) || (command && has_long_option(command->options, name)) ||
        is_name_of_others(tree, path, name))
      refuse_option(tree, path, word);
  }
}

// The names of all commands. A command takes every word that follows its name; its options are bound only once the
// words have named it: the tree grows, the program's start must not.
void add_names(CLI::App& root, const CommandTree& tree) {
  for (const CommandGroup& group : tree.groups) {
    root.add_subcommand(group.name)->fallthrough()->require_subcommand(0, 1);
  }
  for (const auto& command : tree.commands) {
    const Words path = split(command->path, ' ');
    CLI::App* const app = path.size() > 1 ? root.get_subcommand(path.front()) : &root;
    app->add_subcommand(path.back())->fallthrough(false)->prefix_command();
  }
}

// The words of `path` that stand before the stranger: "data" of "data lss ls".
std::string path_before(const std::string& stranger, const std::string& path, const Words& words) {
  const auto end = std::ranges::find(words, stranger);
  Words before;
  auto at = words.begin();
  for (const std::string& name : split(path, ' ')) {
    at = std::find(at, end, name);
    if (at == end) break;
    before.push_back(name);
  }
  return join(before, " ");
}

// Reads the options before the command and takes the words up to its name off.
Parsed take_command(CommandTree& tree, Words& words) {
  CLI::App root;
  root.set_help_flag();
  root.allow_extras()->require_subcommand(0, 1);
  bind_options(root, tree.global_options, words);
  add_names(root, tree);
  run(root, words, {&tree.global_options});
  Parsed parsed;
  const CLI::App* app = &root;
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    parsed.path += (parsed.path.empty() ? "" : " ") + app->get_name();
  }
  const Words strangers = with_empty_values(root.remaining());
  if (!strangers.empty() && strangers.front().starts_with('-')) {
    refuse_single_dash(tree, "", words);
    refuse_option(tree, "", strangers.front());
  }
  if (!strangers.empty()) refuse_command(tree, path_before(strangers.front(), parsed.path, words), strangers.front());
  parsed.command = tree.find(parsed.path);
  words = parsed.command ? app->remaining() : Words();
  return parsed;
}

config::Option* option_for_words(Command& command) {
  const auto found = std::ranges::find_if(
      command.options.options(), [](const config::Option& option) { return static_cast<bool>(option.take_words); });
  return found == command.options.options().end() ? nullptr : &*found;
}

// Whether the word would be an option before `--`.
bool is_option(const config::OptionSet& set, const std::string& word) {
  if (word.starts_with("--")) return has_long_option(set, word.substr(2, word.find('=') - 2));
  return word.size() > 1 && word.front() == '-' &&
         std::ranges::any_of(
             set.options(), [&](const config::Option& option) { return option.letter() == word[1] && !option.hidden; });
}

// A word behind `--` is a name, whatever it begins with.
[[noreturn]] void refuse_extra_name(const CommandTree& tree, const Command& command, const std::string& word) {
  if (is_option(command.options, word) || is_option(tree.global_options, word)) {
    throw UsageError(fmt::format("{}: stands after --, where all words are names", word.substr(0, word.find('='))),
                     "put it before --");
  }
  throw UsageError(fmt::format("{}: '{}' is one word too many", command.path, word), hint_of_extra_word(command, word));
}

[[noreturn]] void refuse_stranger(const CommandTree& tree, const Command& command, const std::string& word) {
  if (word.size() > 1 && word.starts_with('-')) refuse_option(tree, command.path, word);
  throw UsageError(fmt::format("{}: '{}' is one word too many", command.path, word), hint_of_extra_word(command, word));
}

// Another program's command line begins after `--`, or at the first word that is none of the command's own.
void hand_over_rest(config::Option& option, Words rest, const Halves& halves) {
  if (halves.has_mark && !rest.empty()) rest.emplace_back("--");
  rest.insert(rest.end(), halves.after.begin(), halves.after.end());
  if (rest.empty()) return;
  option.given = join(rest, " ");
  option.take_words(std::move(rest));
}

void read_options(CommandTree& tree, Command& command, Halves halves) {
  config::Option* const rest = option_for_words(command);
  if (!rest && halves.has_mark) {
    halves.before.emplace_back("--");
    halves.before.insert(halves.before.end(), halves.after.begin(), halves.after.end());
  }
  CLI::App app;
  app.set_help_flag();
  app.allow_extras()->prefix_command(rest != nullptr);
  bind_options(app, tree.global_options, halves.before);
  bind_options(app, command.options, halves.before);
  run(app, halves.before, {&command.options, &tree.global_options});
  Words strangers = with_empty_values(app.remaining());
  const bool are_of_option = !strangers.empty() && strangers.front().starts_with('-');
  const std::size_t others = rest ? strangers.size() - (are_of_option ? 1 : 0) : 0;
  refuse_single_dash(tree, command.path, std::span(halves.before).first(halves.before.size() - others));
  const bool are_names = !rest && !strangers.empty() && strangers.front() == "--";  // all of them stand behind it
  std::erase(strangers, "--");
  if (are_names && !strangers.empty()) refuse_extra_name(tree, command, strangers.front());
  if (!strangers.empty() && (!rest || are_of_option)) refuse_stranger(tree, command, strangers.front());
  if (rest) hand_over_rest(*rest, std::move(strangers), halves);
}

}  // namespace

Parsed parse(CommandTree& tree, const Words& given) {
  Halves halves = halves_of(given);
  Parsed parsed = take_command(tree, halves.before);
  if (parsed.command) read_options(tree, *parsed.command, std::move(halves));
  return parsed;
}

}  // namespace dtrain::cli
