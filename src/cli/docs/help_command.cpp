#include <fmt/format.h>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/text.hpp>

#include "cli/help.hpp"
#include "cli/topics.hpp"
#include "documents.hpp"
#include "local_words.hpp"

namespace dtrain::cli {
namespace {

struct HelpCommand {
  std::string about;
  std::string generate;                       // a folder
  std::string complete, word, complete_line;  // for shells
};

void bind(config::OptionSet& set, HelpCommand& options, const CommandTree& tree) {
  const std::vector<std::string> topics = topic_names(), commands = tree.next_words("");
  set.group("Options")
      .add("NAME", options.about, join(commands, "|") + "|" + join(topics, "|"),
           "a command or a topic. Topics: " + join(topics, ", "))
      .many = true;
  for (config::Option* option :
       {&set.add("--generate", options.generate, "DIR", "write completions and manual pages to DIR"),
        &set.add("--complete", options.complete, "KIND", "kind of value that the shell completes"),
        &set.add("--word", options.word, "WORD", "beginning of the value, as typed"),
        &set.add("--complete-line", options.complete_line, "LINE", "command line, as typed")})
    option->hidden = option->flag_only = true;
}

[[noreturn]] void refuse(const CommandTree& tree, const std::string& about) {
  std::vector<std::string> known = topic_names();
  for (const auto& command : tree.commands) known.push_back(command->path);
  const auto near = nearest_name(about, known);
  throw UsageError(
      fmt::format("help: '{}' is neither a command nor a topic", about),
      near ? fmt::format("did you mean `dtrain help {}`?", *near) : "`dtrain help` lists commands and topics");
}

const std::string& known_name(const CommandTree& tree, const std::string& about) {
  const bool known = about.empty() || topic_text(tree, about) || tree.find(about) || tree.find_group(about);
  if (!known) refuse(tree, about);
  return about;
}

void answer_help(const CommandTree& tree, const std::string& about, Reporter& reporter) {
  const auto topic = topic_text(tree, known_name(tree, about));
  std::string text = topic ? *topic : short_help(tree, about, reporter);
  text.pop_back();
  reporter.answer(text);
}

// From a tree of its own: that of the running program has taken values from flags and files.
void generate(const Path& folder) {
  CommandTree tree;
  for (const Document& document : documents(tree)) {
    make_folder((folder / document.name).parent_path());
    write_file_atomic(folder / document.name, document.text);
  }
}

void answer_words(const CommandTree& tree, const HelpCommand& options, Reporter& reporter) {
  LocalPlaces places = places_of(tree, options.complete_line);
  places.mount = environment("EFS_MOUNT").value_or("");
  for (const std::string& word : local_words(options.complete, options.word, places)) reporter.answer(word);
}

}  // namespace

std::unique_ptr<Command> make_help(const CommandTree& tree) {
  auto command = std::make_unique<Command>();
  auto options = std::make_shared<HelpCommand>();
  command->path = "help";
  command->sentence = "show the help of a command or a topic";
  command->examples = {"dtrain help train", "dtrain help exit-codes"};
  bind(command->options, *options, tree);
  command->run = [&tree, options = options.get()](Reporter& reporter) {
    if (!options->generate.empty()) {
      generate(options->generate);
    } else if (!options->complete.empty()) {
      answer_words(tree, *options, reporter);
    } else if (reporter.json()) {
      reporter.answer_json(help_json(tree, known_name(tree, options->about)));
    } else {
      answer_help(tree, options->about, reporter);
    }
    return ExitCode::ok;
  };
  command->storage = options;
  return command;
}

}  // namespace dtrain::cli
