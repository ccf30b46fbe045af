#include "documents.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include <dtrain/base/text.hpp>

#include "cli/sources.hpp"

namespace dtrain::cli {
namespace {

constexpr std::string_view kOfHelp = "help ";

std::string sentence_of(const CommandTree& tree, std::string_view path) {
  if (const Command* command = tree.find(path)) return command->sentence;
  const CommandGroup* group = tree.find_group(path);
  return group ? group->sentence : "";
}

void add_options(const config::OptionSet& set, CompletedPath& path) {
  for (const config::Option& option : set.options()) {
    if (option.take_words) path.takes_words = true;
    if (option.hidden || option.take_words) continue;
    (option.positional() ? path.positionals : path.options).push_back(&option);
  }
}

CompletedPath completed(const CommandTree& tree, const std::string& path) {
  const bool of_help = path.starts_with(kOfHelp);
  const std::string about = of_help ? path.substr(kOfHelp.size()) : path;
  const Command* const command = tree.find(of_help ? "help" : path);
  CompletedPath made;
  made.path = path;
  made.is_command = command && !of_help;
  for (const std::string& word : tree.next_words(about)) {
    const std::string whole = about.empty() ? word : about + " " + word;
    made.next.push_back({word, sentence_of(tree, whole)});
  }
  if (command) add_options(command->options, made);
  if (of_help) made.positionals.clear();
  add_options(tree.global_options, made);
  return made;
}

}  // namespace

std::vector<Document> documents(CommandTree& tree) {
  for (const auto& command : tree.commands) command->options.apply_preset();
  std::vector<Document> all = {bash_completion(tree), zsh_completion(tree), fish_completion(tree), manual_page(tree)};
  for (const auto& command : tree.commands) all.push_back(manual_page(tree, *command));
  return all;
}

std::string CompletedPath::lead() const {
  const std::size_t blank = path.rfind(' ');
  return blank == std::string::npos ? "" : path.substr(0, blank);
}

std::string CompletedPath::last_word() const {
  const std::size_t blank = path.rfind(' ');
  return blank == std::string::npos ? path : path.substr(blank + 1);
}

std::vector<CompletedPath> completed_paths(const CommandTree& tree) {
  std::vector<CompletedPath> paths{completed(tree, "")}, of_help;
  for (const std::string& word : tree.next_words("")) {
    paths.push_back(completed(tree, word));
    if (paths.back().next.empty()) continue;
    of_help.push_back(completed(tree, std::string(kOfHelp) + word));
    for (const std::string& next : tree.next_words(word)) paths.push_back(completed(tree, word + " " + next));
  }
  std::ranges::move(of_help, std::back_inserter(paths));
  return paths;
}

std::vector<std::string> spellings(const config::Option& option) {
  if (option.positional()) return {};
  return split(option.flags, ',');
}

std::vector<std::string> choices_of(const config::Option& option) {
  const auto is_small = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const auto is_plain = [&](char c) { return is_small(c) || (c >= 'A' && c <= 'Z') || c == '-' || c == '_'; };
  // "FILE" stands for a value, "True" is one.
  const auto is_choice = [&](const std::string& word) {
    return std::ranges::all_of(word, is_plain) && std::ranges::any_of(word, is_small);
  };
  std::vector<std::string> choices = split(option.value, '|');
  if (choices.size() < 2 || !std::ranges::all_of(choices, is_choice)) return {};
  return choices;
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

bool takes_rest(const config::Option& positional) { return positional.many && choices_of(positional).empty(); }

}  // namespace dtrain::cli
