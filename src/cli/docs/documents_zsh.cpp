// Completion for zsh.
#include <fmt/format.h>

#include <dtrain/base/text.hpp>

#include "documents.hpp"

namespace dtrain::cli {
namespace {

constexpr std::string_view kBegin = R"(#compdef dtrain
# Made by `dtrain completion zsh`; `source <(dtrain completion zsh)` loads it, too.
_dtrain_local() {
  local -a found
  if [[ $PREFIX == '~/'* ]]; then PREFIX=$HOME/${PREFIX:2}; fi
  found=("${(@f)$($_dtrain_program help --complete $1 --word "${(Q)PREFIX}" --complete-line "$_dtrain_line" \
    2>/dev/null)}")
  compadd -q -S '' -a found
}

_dtrain() {
  local dtrain_path='' _dtrain_program=$words[1] _dtrain_line="${(F)${(@)${(@Q)words}/#\~\//$HOME/}}" i last=1
  for ((i = 2; i < CURRENT; i++)); do
    case "$dtrain_path $words[i]" in
)";

constexpr std::string_view kMiddle = R"(    esac
  done
  words=($_dtrain_program "${(@)words[last+1,-1]}")
  ((CURRENT -= last - 1))
  case $dtrain_path in
)";

// From a folder of fpath, zsh loads the script as the body of _dtrain. A shell that sources it may not have set up its
// completion; -i: without a question about folders that others may write.
constexpr std::string_view kEnd = R"(  esac
}

if [[ $funcstack[1] == _dtrain ]]; then
  _dtrain "$@"
else
  (($+functions[compdef])) || { autoload -Uz compinit && compinit -i }
  compdef _dtrain dtrain
fi
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

std::string positional_specs(const CompletedPath& path) {
  std::string text;
  if (!path.next.empty()) text += " \\\n        '1:command:{_describe command dtrain_next}'";
  for (std::size_t place = 0; place < path.positionals.size(); ++place) {
    const config::Option& option = *path.positionals[place];
    if (!is_offered(option)) continue;
    text += fmt::format(" \\\n        '{}:{}:{}'", takes_rest(option) ? "*" : fmt::format("{}", place + 1),
                        safe(option.flags), action_of(option));
  }
  return text;
}

std::string option_specs(const config::Option& option) {
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

std::string next_words(const CompletedPath& path) {
  if (path.next.empty()) return "";
  std::string text = "\n      local -a dtrain_next=(";
  for (const CompletedPath::NextWord& next : path.next)
    text += fmt::format("\n        '{}:{}'", next.word, safe(next.sentence));
  return text + ")";
}

std::string arguments_case(const CompletedPath& path) {
  std::string text = fmt::format("    '{}'){}\n      _arguments -s -S", path.path, next_words(path));
  text += positional_specs(path);
  for (const config::Option* option : path.options) text += option_specs(*option);
  return text + " ;;\n";
}

std::string path_case(const CompletedPath& path) {
  if (path.path.empty()) return "";
  std::string text =
      fmt::format("      '{} {}') dtrain_path='{}' last=$i ;;\n", path.lead(), path.last_word(), path.path);
  if (path.takes_words) {
    text += fmt::format(
        "      '{} --')\n        words=(\"${{(@)words[i+1,-1]}}\")\n        ((CURRENT -= i))\n        _normal\n"
        "        return ;;\n",
        path.path);
  }
  return text;
}

}  // namespace

Document zsh_completion(const CommandTree& tree) {
  std::string paths, arguments;
  for (const CompletedPath& path : completed_paths(tree)) {
    paths += path_case(path);
    arguments += arguments_case(path);
  }
  const std::string text = std::string(kBegin) + paths + std::string(kMiddle) + arguments;
  return {"completions/_dtrain", text + std::string(kEnd)};
}

}  // namespace dtrain::cli
