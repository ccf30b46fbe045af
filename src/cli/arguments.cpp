#include "arguments.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/text.hpp>

namespace dtrain::cli {
namespace {

class Corrector {
 public:
  Corrector(const CommandTree& tree, const std::vector<std::string>& given) : tree_(tree), given_(given) {}

  Arguments run() {
    for (; next_ < given_.size(); ++next_) {
      const std::string& word = given_[next_];
      if (takes_words() && !word.starts_with('-') && own_words_ == own_words_of_command()) {
        take_rest(next_);
        break;
      }
      if (word == "--" && takes_words()) {
        take_rest(next_ + 1);
        break;
      }
      if (word == "--") {
        out_.words.insert(out_.words.end(), given_.begin() + static_cast<std::ptrdiff_t>(next_), given_.end());
        break;
      }
      if (word.starts_with("--")) {
        long_option(word);
      } else if (word.size() > 1 && word[0] == '-') {
        short_option(word);
      } else {
        plain_word(word);
      }
    }
    return std::move(out_);
  }

 private:
  bool takes_words() const {
    const Command* command = tree_.find(out_.path);
    return command && std::ranges::any_of(command->options.options(), [](const config::Option& option) {
             return static_cast<bool>(option.take_words);
           });
  }

  // Positionals that come before them.
  std::ptrdiff_t own_words_of_command() const {
    return std::ranges::count_if(tree_.find(out_.path)->options.options(), [](const config::Option& option) {
      return option.positional() && !option.take_words && !option.hidden;
    });
  }

  void take_rest(std::size_t begin) {
    out_.rest.assign(given_.begin() + static_cast<std::ptrdiff_t>(begin), given_.end());
  }

  void plain_word(const std::string& word) {
    const auto choices = tree_.next_words(out_.path);
    if (tree_.find(out_.path)) {
      ++own_words_;
    } else if (!choices.empty()) {
      descend(word, choices);
    }
    out_.words.push_back(word);
  }

  void descend(const std::string& word, const std::vector<std::string>& choices) {
    const std::string path = out_.path.empty() ? word : out_.path + " " + word;
    if (!tree_.find(path) && !tree_.find_group(path)) refuse_command(word, choices);
    out_.path = path;
  }

  [[noreturn]] void refuse_command(const std::string& word, const std::vector<std::string>& choices) const {
    const auto near = nearest_name(word, choices);
    const std::string lead = out_.path.empty() ? "" : out_.path + " ";
    throw UsageError(fmt::format("{}{}: unknown command", lead, word),
                     near ? fmt::format("did you mean 'dtrain {}{}'?", lead, *near)
                          : fmt::format("commands are: {}", join(choices, ", ")));
  }

  // Every option that is valid here: the command's and those that every command takes.
  std::vector<const config::Option*> known() const {
    std::vector<const config::Option*> options;
    const auto collect = [&](const config::OptionSet& set) {
      for (const config::Option& option : set.options()) {
        if (!option.positional()) options.push_back(&option);
      }
    };
    if (const Command* command = tree_.find(out_.path)) collect(command->options);
    collect(tree_.global_options);
    return options;
  }

  void long_option(const std::string& word) {
    const auto equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    const config::Option& option = by_name(name);
    if (option.is_switch()) {
      if (equals != std::string::npos) throw UsageError(option.shown_name() + ": takes no value");
      out_.words.push_back(option.shown_name());
    } else if (equals != std::string::npos) {
      push_value(option, word.substr(equals + 1));
    } else {
      push_value(option, following_value(option));
    }
  }

  const config::Option& by_name(const std::string& name) const {
    std::vector<std::string> names, starting;
    const config::Option* found = nullptr;
    for (const config::Option* option : known()) {
      const std::string candidate = option->name();
      if (candidate == name) return *option;
      names.push_back("--" + candidate);
      if (name.empty() || !candidate.starts_with(name)) continue;
      starting.push_back(names.back());
      found = option;
    }
    if (starting.size() == 1) return *found;
    if (!starting.empty()) {
      throw UsageError(fmt::format("--{}: several options begin with this", name),
                       fmt::format("it could be {}", join(starting, ", ")));
    }
    refuse_option("--" + name, names);
  }

  [[noreturn]] void refuse_option(const std::string& word, const std::vector<std::string>& names) const {
    const auto near = nearest_name(word, names);
    const std::string help = out_.path.empty() ? "dtrain --help" : "dtrain " + out_.path + " --help";
    const bool no_command = !tree_.find(out_.path);
    throw UsageError(fmt::format("{}: unknown option{}", word, no_command ? " before a command" : ""),
                     near ? fmt::format("did you mean '{}'?", *near) : fmt::format("`{}` lists the options", help));
  }

  void short_option(const std::string& word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      const config::Option& option = by_letter(word, word[i]);
      if (option.is_switch()) {
        out_.words.push_back(fmt::format("-{}", word[i]));
        continue;
      }
      push_value(option, i + 1 < word.size() ? word.substr(i + 1) : following_value(option));
      return;
    }
  }

  const config::Option& by_letter(const std::string& word, char letter) const {
    std::vector<std::string> names;
    for (const config::Option* option : known()) {
      if (option->letter() == letter) return *option;
      names.push_back("--" + option->name());
    }
    // "-lr 0.1" most likely means "--lr 0.1".
    refuse_option(word.size() > 2 ? "-" + word : word, names);
  }

  std::string following_value(const config::Option& option) {
    const bool there = next_ + 1 < given_.size() && !given_[next_ + 1].starts_with("--");
    if (there) return given_[++next_];
    if (option.without_value) return *option.without_value;
    throw UsageError(fmt::format("{}: needs a value ({})", option.shown_name(), option.value));
  }

  void push_value(const config::Option& option, const std::string& value) {
    if (value.empty()) {
      out_.words.push_back(option.shown_name());
      out_.words.push_back(value);
    } else {
      out_.words.push_back(option.shown_name() + "=" + value);
    }
  }

  const CommandTree& tree_;
  const std::vector<std::string>& given_;
  std::size_t next_ = 0;
  std::ptrdiff_t own_words_ = 0;  // of the command, so far
  Arguments out_;
};

}  // namespace

Arguments correct_arguments(const CommandTree& tree, const std::vector<std::string>& given) {
  return Corrector(tree, given).run();
}

}  // namespace dtrain::cli
