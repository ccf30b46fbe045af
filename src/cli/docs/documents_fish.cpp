// Completion for fish.
#include <fmt/format.h>

#include <dtrain/base/text.hpp>

#include "documents.hpp"

namespace dtrain::cli {
namespace {

constexpr std::string_view kBegin = R"(# Made by `dtrain completion fish`.
function __dtrain_local
    set -l words (commandline -opc)
    $words[1] help --complete $argv[1] --word (commandline -ct) --complete-line "$words" 2>/dev/null
end

function __dtrain_at
    set -l at ''
    for word in (commandline -opc)[2..-1]
        switch "$at $word"
)";

std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string offer_of(const config::Option& option) {
  const auto choices = choices_of(option);
  if (!choices.empty()) return fmt::format(" -a {}", in_quotes(join(choices, " ")));
  if (option.offers == config::Offers::files) return " -F";
  return fmt::format(" -a '(__dtrain_local {})'", word_of(option.offers));
}

std::string values_of(const config::Option& option) {
  const char* const only = option.offers == config::Offers::files ? " -r" : " -x";
  return only + (is_offered(option) ? offer_of(option) : std::string());
}

std::string line_of(const std::string& path, const config::Option& option) {
  std::string line = fmt::format("complete -c dtrain -n \"__dtrain_at '{}'\"", path);
  if (option.positional()) {
    return is_offered(option) ? line + offer_of(option) + "\n" : "";
  }
  if (option.letter()) line += fmt::format(" -s {}", option.letter());
  if (option.flags.find("--") != std::string::npos) line += fmt::format(" -l {}", option.name());
  return line + (option.is_switch() ? "" : values_of(option)) + fmt::format(" -d {}\n", in_quotes(option.help));
}

}  // namespace

Document fish_completion(const CommandTree& tree) {
  std::string text(kBegin), lines;
  for (const std::string& path : documented_paths(tree)) {
    const auto blank = path.rfind(' ');
    const std::string lead = blank == std::string::npos ? "" : path.substr(0, blank);
    const std::string word = path.substr(blank == std::string::npos ? 0 : blank + 1);
    text += fmt::format("            case '{} {}'\n                set at '{}'\n", lead, word, path);
    lines += fmt::format("complete -c dtrain -n \"__dtrain_at '{}'\" -a {} -d {}\n", lead, word,
                         in_quotes(sentence_of(tree, path)));
    const Command* command = tree.find(path);
    if (!command) continue;
    for (const config::Option* option : documented_options(tree, *command)) lines += line_of(path, *option);
  }
  text += "        end\n    end\n    test \"$at\" = \"$argv[1]\"\nend\n\ncomplete -c dtrain -f\n";
  return {"completions/dtrain.fish", text + lines};
}

}  // namespace dtrain::cli
