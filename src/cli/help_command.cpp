#include <fmt/format.h>

#include <dtrain/base/text.hpp>

#include "help.hpp"
#include "topics.hpp"

namespace dtrain::cli {
namespace {

[[noreturn]] void refuse(const CommandTree& tree, const std::string& about) {
  std::vector<std::string> known = topic_names();
  for (const auto& command : tree.commands) known.push_back(command->path);
  const auto near = nearest_name(about, known);
  throw UsageError(
      fmt::format("help: nothing is called '{}'", about),
      near ? fmt::format("did you mean `dtrain help {}`?", *near) : "`dtrain help` lists commands and topics");
}

void answer_help(const CommandTree& tree, const std::string& about, Console& console) {
  const auto topic = topic_text(tree, about);
  const bool known = about.empty() || topic || tree.find(about) || tree.find_group(about);
  if (!known) refuse(tree, about);
  std::string text = topic ? *topic : long_help(tree, about, console);
  text.pop_back();
  console.answer(text);
}

}  // namespace

std::unique_ptr<Command> make_help(const CommandTree& tree) {
  auto command = std::make_unique<Command>();
  auto about = std::make_shared<std::string>();
  command->path = "help";
  command->sentence = "explain a command or a topic";
  command->examples = {"dtrain help train", "dtrain help exit-codes"};
  command->options.group("What")
      .add("NAME", *about, "NAME", "a command, or a topic: " + join(topic_names(), ", "))
      .many = true;
  command->run = [&tree, about = about.get()](Console& console) {
    answer_help(tree, *about, console);
    return ExitCode::ok;
  };
  command->storage = about;
  return command;
}

}  // namespace dtrain::cli
