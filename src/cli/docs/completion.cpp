#include "documents.hpp"

namespace dtrain::cli {
namespace {

struct CompletionCommand {
  std::string shell;
};

void bind(config::OptionSet& set, CompletionCommand& options) {
  set.group("Options")
      .add_choice("SHELL", options.shell, {"bash", "zsh", "fish"},
                  "shell whose script is printed, with --json too: bash, zsh or fish")
      .required = true;
}

ExitCode act(const CompletionCommand& options, const config::OptionSet&, Reporter& reporter) {
  const CommandTree tree;  // that of the running program has taken values
  Document script = options.shell == "bash"  ? bash_completion(tree)
                    : options.shell == "zsh" ? zsh_completion(tree)
                                             : fish_completion(tree);
  script.text.pop_back();
  reporter.answer(script.text);
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_completion() {
  auto command = make_command<CompletionCommand>(
      "completion", "print the script by which a shell completes commands, options and values", act);
  command->examples = {"dtrain completion bash", "dtrain completion zsh", "dtrain completion fish"};
  command->see_also = {"help"};
  return command;
}

}  // namespace dtrain::cli
