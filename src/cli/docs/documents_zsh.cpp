// Completion for zsh.
#include <fmt/format.h>

#include <dtrain/base/text.hpp>

#include "documents.hpp"

namespace dtrain::cli {
namespace {

constexpr std::string_view kBegin = R"(#compdef dtrain
# Made by `dtrain completion zsh`.
_dtrain_local() {
  local -a found
  found=("${(@f)$($_dtrain_program help --complete $1 --word "$PREFIX" --complete-line "$_dtrain_line" 2>/dev/null)}")
  compadd -q -S '' -a found
}

_dtrain() {
  local dtrain_path='' _dtrain_program=$words[1] _dtrain_line="$words[*]" i last=1
  for ((i = 2; i < CURRENT; i++)); do
    case "$dtrain_path $words[i]" in
)";

// For a place between single quotes and brackets or colons.
std::string safe(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string action_of(const config::Option& option) {
  const auto choices = choices_of(option);
  if (!choices.empty()) return fmt::format("({})", join(choices, " "));
  if (option.offers == config::Offers::files) return "_files";
  const std::string_view word = word_of(option.offers);
  return word.empty() ? " " : fmt::format("{{_dtrain_local {}}}", word);
}

std::string specs_of(const config::Option& option) {
  if (option.positional())
    return !is_offered(option) ? "" : fmt::format(" \\\n        '*:{}:{}'", safe(option.flags), action_of(option));
  std::string text;
  for (const std::string& spelling : spellings(option)) {
    const bool is_long = spelling.starts_with("--");
    text += fmt::format(" \\\n        '{}{}[{}]{}'", spelling,
                        option.is_switch() ? ""
                        : is_long          ? "="
                                           : "+",
                        safe(option.help),
                        option.is_switch() ? "" : fmt::format(":{}:{}", safe(option.value), action_of(option)));
  }
  return text;
}

std::string words_case(const CommandTree& tree, const std::string& path) {
  std::string text = fmt::format("    '{}')\n      local -a next=(", path);
  for (const std::string& word : tree.next_words(path)) {
    const std::string whole = path.empty() ? word : path + " " + word;
    text += fmt::format("\n        '{}:{}'", word, safe(sentence_of(tree, whole)));
  }
  return text + ")\n      _describe command next ;;\n";
}

}  // namespace

Document zsh_completion(const CommandTree& tree) {
  std::string text(kBegin), cases = words_case(tree, "");
  for (const std::string& path : documented_paths(tree)) {
    const auto blank = path.rfind(' ');
    const std::string lead = blank == std::string::npos ? "" : path.substr(0, blank);
    text += fmt::format("      '{} {}') dtrain_path='{}' last=$i ;;\n", lead,
                        path.substr(blank == std::string::npos ? 0 : blank + 1), path);
    const Command* command = tree.find(path);
    if (!command) {
      cases += words_case(tree, path);
      continue;
    }
    cases += fmt::format("    '{}')\n      _arguments -s -S", path);
    for (const config::Option* option : documented_options(tree, *command)) cases += specs_of(*option);
    if (const auto next = tree.next_words(path); !next.empty())
      cases += fmt::format(" \\\n        '1:command:({})'", join(next, " "));
    cases += " ;;\n";
  }
  text +=
      "    esac\n  done\n  words=($_dtrain_program \"${(@)words[last+1,-1]}\")\n  ((CURRENT -= last - 1))\n  case "
      "$dtrain_path in\n";
  return {"completions/_dtrain", text + cases + "  esac\n}\n\n_dtrain \"$@\"\n"};
}

}  // namespace dtrain::cli
