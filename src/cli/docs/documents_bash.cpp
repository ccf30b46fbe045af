// Completion for bash; it needs no bash-completion.
#include <fmt/format.h>

#include <dtrain/base/text.hpp>

#include "documents.hpp"

namespace dtrain::cli {
namespace {

constexpr std::string_view kBegin = R"(# Made by `dtrain completion bash`; `source <(dtrain completion bash)` loads it.
# shellcheck shell=bash
_dtrain_files() {  # only names: -o filenames would hold for other words too
  local IFS=$'\n'
  mapfile -t COMPREPLY < <(compgen -f -- "$1")
  compopt -o filenames 2>/dev/null
}

_dtrain_split() {  # sets words to those of $1 as a program gets them, the begun one last, and quote to that around it
  local i c word='' is_word=''
  words=() quote=''
  for ((i = 0; i < ${#1}; i++)); do
    c=${1:i:1}
    if [[ -z $quote && $c == [[:space:]] ]]; then
      if [[ -n $is_word ]]; then words+=("$word"); fi
      word='' is_word=''
      continue
    fi
    is_word=1
    if [[ -n $quote && $c == "$quote" ]]; then
      quote=''
    elif [[ -z $quote && $c == [\'\"] ]]; then
      quote=$c
    elif [[ $c == "\\" && $quote != "'" ]]; then
      ((++i))
      word+=${1:i:1}
    else
      word+=$c
    fi
  done
  words+=("$word")
}

_dtrain_value() {  # what is offered as the value of the option that ends $1: choices or a kind; neither: it takes none
  choices='' kind=''
  case $1 in
)";

constexpr std::string_view kMiddle = R"(  esac
}

_dtrain() {
  local line=${COMP_LINE:0:COMP_POINT} words quote current previous path='' place=0 i choices='' kind=''
  _dtrain_split "$line"
  current=${words[-1]} previous=${words[-2]:-}
  if [[ $current == --*=* ]]; then previous=${current%%=*} current=${current#*=}; fi
  for ((i = 1; i + 1 < ${#words[@]}; i++)); do
    case "$path ${words[i]}" in
)";

constexpr std::string_view kPlaces = R"(      *' -'*)
        _dtrain_value "$path ${words[i]}"
        if [[ -n $choices$kind ]]; then ((++i)); fi
        ;;
      *) ((++place)) ;;
    esac
  done
  _dtrain_value "$path $previous"
  if [[ -z $choices$kind ]]; then
    case $path in
)";

constexpr std::string_view kEnd = R"(    esac
  fi
  case $kind in
    '') mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$current") ;;
    none) COMPREPLY=() ;;
    files) _dtrain_files "$current" ;;
    *)
      if [[ -z $quote && $current == \~/* ]]; then current=$HOME/${current:2}; fi
      for i in "${!words[@]}"; do
        if [[ ${words[i]} == \~/* ]]; then words[i]=$HOME/${words[i]:2}; fi
      done
      line=$(printf '%s\n' "${words[@]}")
      mapfile -t COMPREPLY < <("${words[0]}" help --complete "$kind" --word "$current" \
        --complete-line "$line" 2>/dev/null)
      for i in "${!COMPREPLY[@]}"; do
        if [[ -z $quote && ${COMPREPLY[i]} == *[^[:alnum:]_./:@%+=,-]* ]]; then
          printf -v "COMPREPLY[$i]" %q "${COMPREPLY[i]}"
        fi
      done
      ;;
  esac
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

std::string value_cases(const CompletedPath& path) {
  std::string text;
  for (const config::Option* option : path.options) {
    if (option->is_switch()) continue;
    std::string patterns;
    for (const std::string& spelling : spellings(*option))
      patterns += fmt::format("{}'{} {}'", patterns.empty() ? "" : " | ", path.path, spelling);
    text += fmt::format("    {}) {} ;;\n", patterns, offer_of(*option));
  }
  return text;
}

std::string path_case(const CompletedPath& path) {
  if (path.path.empty()) return "";
  std::string text = fmt::format("      '{} {}') path='{}' ;;\n", path.lead(), path.last_word(), path.path);
  if (path.takes_words) {
    text += fmt::format("      '{} --')\n        _dtrain_files \"$current\"\n        return\n        ;;\n", path.path);
  }
  return text;
}

std::string next_words(const CompletedPath& path) {
  std::vector<std::string> words;
  for (const CompletedPath::NextWord& next : path.next) words.push_back(next.word);
  return join(words, " ");
}

// What is offered by the place of a word that is no option.
std::string offers_by_place(const CompletedPath& path) {
  if (!path.is_command) return fmt::format("0) choices='{}' ;; ", next_words(path));
  std::string offers;
  for (std::size_t place = 0; place < path.positionals.size(); ++place) {
    const config::Option& option = *path.positionals[place];
    if (!is_offered(option)) continue;
    offers += fmt::format("{}) {} ;; ", takes_rest(option) ? "*" : fmt::format("{}", place), offer_of(option));
  }
  return offers;
}

std::string words_case(const CompletedPath& path) {
  std::vector<std::string> words;
  if (path.is_command && !path.next.empty()) words.push_back(next_words(path));
  for (const config::Option* option : path.options) {
    for (std::string& spelling : spellings(*option)) words.push_back(std::move(spelling));
  }
  const std::string offers = offers_by_place(path);
  return fmt::format("      '{}') choices='{}'{} ;;\n", path.path, join(words, " "),
                     offers.empty() ? "" : fmt::format("; [[ $current == -* ]] || case $place in {}esac", offers));
}

}  // namespace

Document bash_completion(const CommandTree& tree) {
  std::string values, paths, words;
  for (const CompletedPath& path : completed_paths(tree)) {
    values += value_cases(path);
    paths += path_case(path);
    words += words_case(path);
  }
  const std::string text = std::string(kBegin) + values + std::string(kMiddle) + paths + std::string(kPlaces) + words;
  return {"completions/dtrain.bash", text + std::string(kEnd)};
}

}  // namespace dtrain::cli
