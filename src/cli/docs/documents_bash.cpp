// Completion for bash; it needs no bash-completion.
#include <fmt/format.h>

#include <dtrain/base/text.hpp>

#include "documents.hpp"

namespace dtrain::cli {
namespace {

constexpr std::string_view kBegin = R"(# Made by `dtrain completion bash`.
# shellcheck shell=bash
_dtrain_files() {  # only names: -o filenames would hold for other words too
  local IFS=$'\n'
  mapfile -t COMPREPLY < <(compgen -f -- "$1")
  compopt -o filenames 2>/dev/null
}

_dtrain() {
  local line=${COMP_LINE:0:COMP_POINT} words=() current previous path='' i choices='' kind=''
  read -ra words <<<"$line"
  if [[ $line == *[[:space:]] ]]; then words+=(''); fi
  current=${words[-1]} previous=${words[-2]:-}
  if [[ $current == --*=* ]]; then previous=${current%%=*} current=${current#*=}; fi
  for ((i = 1; i + 1 < ${#words[@]}; i++)); do
    case "$path ${words[i]}" in
)";

constexpr std::string_view kEnd = R"(  if [[ -n $kind ]]; then
    case $kind in
      none) COMPREPLY=(); return ;;
      files) _dtrain_files "$current"; return ;;
    esac
    choices=$("${words[0]}" help --complete "$kind" --word "$current" --complete-line "$line" 2>/dev/null)
  fi
  mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$current")
  if [[ $current == *:* && $COMP_WORDBREAKS == *:* ]]; then  # bash keeps what stands before the colon itself
    COMPREPLY=("${COMPREPLY[@]#"${current%"${current##*:}"}"}")
  fi
  if [[ ${COMPREPLY[*]} == */ ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -F _dtrain dtrain
)";

std::string kind_of(const config::Option& option) {
  if (option.offers == config::Offers::files) return "files";
  const std::string_view word = word_of(option.offers);
  return word.empty() ? "none" : std::string(word);
}

std::string offer_of(const config::Option& option) {
  const auto choices = choices_of(option);
  return choices.empty() ? fmt::format("kind='{}'", kind_of(option)) : fmt::format("choices='{}'", join(choices, " "));
}

std::string value_case(const std::string& path, const config::Option& option) {
  std::string patterns;
  for (const std::string& spelling : spellings(option))
    patterns += fmt::format("{}'{} {}'", patterns.empty() ? "" : " | ", path, spelling);
  return fmt::format("      {}) {} ;;\n", patterns, offer_of(option));
}

std::string value_cases(const CommandTree& tree) {
  std::string text = "  case \"$path $previous\" in\n";
  for (const auto& command : tree.commands) {
    for (const config::Option* option : documented_options(tree, *command)) {
      if (!option->positional() && !option->is_switch()) text += value_case(command->path, *option);
    }
  }
  return text + "      *) kind='' ;;\n  esac\n";
}

std::string words_of(const CommandTree& tree, const std::string& path) {
  const Command* command = tree.find(path);
  if (!command) return join(tree.next_words(path), " ");
  std::string flags = join(tree.next_words(path), " ");
  for (const config::Option* option : documented_options(tree, *command)) {
    for (const std::string& spelling : spellings(*option)) flags += (flags.empty() ? "" : " ") + spelling;
  }
  return flags;
}

std::string word_cases(const CommandTree& tree) {
  std::string text = "  if [[ -z $choices$kind ]]; then\n    case $path in\n";
  std::vector<std::string> paths = documented_paths(tree);
  paths.insert(paths.begin(), "");
  for (const std::string& path : paths) {
    const Command* command = tree.find(path);
    const config::Option* positional = command ? offering_positional(*command) : nullptr;
    text += fmt::format("      '{}') choices='{}'{} ;;\n", path, words_of(tree, path),
                        positional ? fmt::format("; if [[ $current != -* ]]; then {}; fi", offer_of(*positional)) : "");
  }
  return text + "    esac\n  fi\n";
}

}  // namespace

Document bash_completion(const CommandTree& tree) {
  std::string text(kBegin);
  for (const std::string& path : documented_paths(tree)) {
    const auto blank = path.rfind(' ');
    const std::string lead = blank == std::string::npos ? "" : path.substr(0, blank);
    text += fmt::format("      '{} {}') path='{}' ;;\n", lead, path.substr(blank == std::string::npos ? 0 : blank + 1),
                        path);
  }
  text += "    esac\n  done\n";
  return {"completions/dtrain.bash", text + value_cases(tree) + word_cases(tree) + std::string(kEnd)};
}

}  // namespace dtrain::cli
