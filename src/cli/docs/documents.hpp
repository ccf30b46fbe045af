// The documents that are views of the command tree: manual pages, and what shells complete. They are kept in the
// sources, so that packages need not run the program that they are made of; a test compares them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"

namespace dtrain::cli {

struct Document {
  Path name;  // below the folder of all: "man/dtrain-train.1"
  std::string text;
};

// Sets the options of the tree to their defaults.
std::vector<Document> documents(CommandTree& tree);

Document manual_page(const CommandTree& tree);                          // dtrain.1
Document manual_page(const CommandTree& tree, const Command& command);  // dtrain-data-prepare.1, ...
Document bash_completion(const CommandTree& tree);
Document zsh_completion(const CommandTree& tree);
Document fish_completion(const CommandTree& tree);

// `dtrain help --json`: commands, options, ranges, defaults, refusals; only what begins with `about`, or that topic.
Json help_json(const CommandTree& tree, const std::string& about);

// What they share.

// Where a shell completes: behind `dtrain`, a group, a command, or `help` and a group.
struct CompletedPath {
  struct NextWord {
    std::string word, sentence;
  };
  std::string path;                                // "", "data", "data prepare", "help data"
  std::vector<NextWord> next;                      // that lead further
  bool is_command = false;                         // it needs none of these
  bool takes_words = false;                        // behind `--` stands the command line of another program
  std::vector<const config::Option*> options;      // the command's own, then those of all; without the hidden ones
  std::vector<const config::Option*> positionals;  // but for the words of another program

  std::string lead() const;       // "data" of "data prepare"
  std::string last_word() const;  // "prepare"
};
std::vector<CompletedPath> completed_paths(const CommandTree& tree);
// "-n", "--num-workers"; none of a positional.
std::vector<std::string> spellings(const config::Option& option);
// a, b of "a|b"; none where a value is not one of a list.
std::vector<std::string> choices_of(const config::Option& option);
// Whether shells can offer values of it.
bool is_offered(const config::Option& option);
// What `dtrain help --complete` calls it; empty: nothing that is asked for.
std::string_view word_of(config::Offers offers);
// Whether a positional's values are offered for every word from its place on. Choices are the beginnings of a name of
// several words.
bool takes_rest(const config::Option& positional);

}  // namespace dtrain::cli
