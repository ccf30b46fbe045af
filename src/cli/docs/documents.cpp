#include "documents.hpp"

#include <algorithm>
#include <set>

#include <dtrain/base/text.hpp>

#include "cli/sources.hpp"

namespace dtrain::cli {

std::vector<Document> documents(CommandTree& tree) {
  for (const auto& command : tree.commands) command->options.apply_preset();
  std::vector<Document> all = {bash_completion(tree), zsh_completion(tree), fish_completion(tree), manual_page(tree)};
  for (const auto& command : tree.commands) all.push_back(manual_page(tree, *command));
  return all;
}

std::vector<const config::Option*> documented_options(const CommandTree& tree, const Command& command) {
  std::vector<const config::Option*> shown;
  for (const config::OptionSet* set : {&command.options, &tree.global_options}) {
    for (const config::Option& option : set->options()) {
      if (!option.hidden) shown.push_back(&option);
    }
  }
  return shown;
}

std::vector<std::string> documented_paths(const CommandTree& tree) {
  std::vector<std::string> paths;
  for (const std::string& word : tree.next_words("")) {
    paths.push_back(word);
    for (const std::string& next : tree.next_words(word)) paths.push_back(word + " " + next);
  }
  return paths;
}

std::string sentence_of(const CommandTree& tree, std::string_view path) {
  if (const Command* command = tree.find(path)) return command->sentence;
  const CommandGroup* group = tree.find_group(path);
  return group ? group->sentence : "";
}

std::vector<std::string> spellings(const config::Option& option) {
  if (option.positional()) return {};
  return split(option.flags, ',');
}

std::vector<std::string> choices_of(const config::Option& option) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '|';
  };
  if (option.value.find('|') == std::string::npos || !std::ranges::all_of(option.value, is_plain)) return {};
  return split(option.value, '|');
}

bool is_offered(const config::Option& option) {
  return option.offers != config::Offers::nothing || !choices_of(option).empty();
}

std::string_view word_of(config::Offers offers) {
  switch (offers) {
    case config::Offers::hosts:
      return "hosts";
    case config::Offers::jobs:
      return "jobs";
    case config::Offers::networks:
      return "networks";
    case config::Offers::checkpoints:
      return "checkpoints";
    case config::Offers::epochs:
      return "epochs";
    case config::Offers::nothing:
    case config::Offers::files:
      break;
  }
  return "";
}

const config::Option* offering_positional(const Command& command) {
  const auto found = std::ranges::find_if(command.options.options(), [](const config::Option& option) {
    return option.positional() && is_offered(option);
  });
  return found == command.options.options().end() ? nullptr : &*found;
}

}  // namespace dtrain::cli
