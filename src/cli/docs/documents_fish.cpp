// Completion for fish.
#include <fmt/format.h>

#include <dtrain/base/text.hpp>

#include "documents.hpp"

namespace dtrain::cli {
namespace {

constexpr std::string_view kBegin = R"(# Made by `dtrain completion fish`; `dtrain completion fish | source` loads it.
function __dtrain_local
    set -l words (commandline -opc)
    set -l word (string replace -r '^--[a-z0-9-]+=' '' -- (string unescape -- (commandline -ct)))
    set -l line (string join \n -- (string replace -r '^~/' "$HOME/" -- $words) | string collect)
    if not string match -q '~/*' -- $word
        $words[1] help --complete $argv[1] --word "$word" --complete-line "$line" 2>/dev/null
        return
    end
    set -l home (string escape --style=regex -- "$HOME/")
    $words[1] help --complete $argv[1] --word "$HOME/"(string sub -s 3 -- $word) --complete-line "$line" 2>/dev/null |
        string replace -r "^$home" '~/'
end

# Whether a value follows the option $argv[2] of the command $argv[1].
function __dtrain_takes_value
    switch $argv[1]
)";

// What `complete` asks: the command so far, and where it matters the place of the next word that is no option.
constexpr std::string_view kMiddle = R"(    end
end

# Whether the command so far is $argv[1] and the next word has the place $argv[2], or a later one with `on` behind it.
function __dtrain_at
    set -l at ''
    set -l place 0
    set -l is_value ''
    for word in (commandline -opc)[2..-1]
        if test -n "$is_value"
            set is_value ''
            continue
        end
        switch "$at $word"
)";

constexpr std::string_view kEnd = R"(            case '* -*'
                __dtrain_takes_value $at $word; and set is_value 1
            case '*'
                set place (math $place + 1)
        end
    end
    test "$at" = "$argv[1]"; or return
    test -z "$argv[2]"; or test "$place" -eq "$argv[2]"; or test -n "$argv[3]" -a "$place" -gt "$argv[2]"
end

complete -c dtrain -f
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

std::string option_line(const std::string& path, const config::Option& option) {
  std::string line = fmt::format("complete -c dtrain -n \"__dtrain_at '{}'\"", path);
  if (option.letter()) line += fmt::format(" -s {}", option.letter());
  if (option.flags.find("--") != std::string::npos) line += fmt::format(" -l {}", option.name());
  return line + (option.is_switch() ? "" : values_of(option)) + fmt::format(" -d {}\n", in_quotes(option.help));
}

std::string positional_lines(const CompletedPath& path) {
  std::string lines;
  for (const CompletedPath::NextWord& next : path.next)
    lines += fmt::format("complete -c dtrain -n \"__dtrain_at '{}' 0\" -a {} -d {}\n", path.path, next.word,
                         in_quotes(next.sentence));
  for (std::size_t place = 0; place < path.positionals.size(); ++place) {
    const config::Option& option = *path.positionals[place];
    if (!is_offered(option)) continue;
    lines += fmt::format("complete -c dtrain -n \"__dtrain_at '{}' {}{}\"{}\n", path.path, place,
                         takes_rest(option) ? " on" : "", offer_of(option));
  }
  if (path.takes_words) lines += fmt::format("complete -c dtrain -n \"__dtrain_at '{} --'\" -F\n", path.path);
  return lines;
}

std::string path_case(const CompletedPath& path) {
  if (path.path.empty()) return "";
  constexpr const char* kCase = "            case '{} {}'\n                set at '{}'\n";
  std::string text = fmt::format(kCase, path.lead(), path.last_word(), path.path);
  if (path.takes_words) text += fmt::format(kCase, path.path, "--", path.path + " --");
  return text;
}

std::string value_case(const CompletedPath& path) {
  std::string names;
  for (const config::Option* option : path.options) {
    if (option->is_switch()) continue;
    for (const std::string& spelling : spellings(*option)) names += " " + spelling;
  }
  return fmt::format("        case '{}'\n            contains -- $argv[2]{}\n", path.path, names);
}

}  // namespace

Document fish_completion(const CommandTree& tree) {
  std::string values, paths, lines;
  for (const CompletedPath& path : completed_paths(tree)) {
    values += value_case(path);
    paths += path_case(path);
    lines += positional_lines(path);
    for (const config::Option* option : path.options) lines += option_line(path.path, *option);
  }
  values += "        case '*'\n            false\n";
  const std::string text = std::string(kBegin) + values + std::string(kMiddle) + paths + std::string(kEnd);
  return {"completions/dtrain.fish", text + lines};
}

}  // namespace dtrain::cli
