// Manual pages in mdoc(7).
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include <dtrain/base/text.hpp>

#include "cli/help.hpp"
#include "cli/topics.hpp"
#include "documents.hpp"

namespace dtrain::cli {
namespace {

std::string page_name(std::string_view path) {
  std::string name = path.empty() ? "dtrain" : fmt::format("dtrain-{}", path);
  std::ranges::replace(name, ' ', '-');
  return name;
}

// Text as roff must be given it to print it as it stands.
std::string plain(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '\\') {
      safe += "\\e";
    } else if (c == '-') {
      safe += "\\-";
    } else if (c == '`') {
      safe += "\\(ga";
    } else if (c == '\'') {
      safe += "\\(aq";
    } else if (c == '~') {
      safe += "\\(ti";
    } else if (c == '^') {
      safe += "\\(ha";
    } else {
      safe += c;
    }
  }
  return safe.starts_with('.') ? "\\&" + safe : safe;
}

// Each sentence on a line of its own, as mdoc wants it.
std::string sentences(std::string text) {
  for (std::size_t at = 0; (at = text.find(". ", at)) != std::string::npos; ++at) text.replace(at, 2, ".\n\\&");
  return text;
}

// One argument of a macro, which is none itself.
std::string argument(std::string_view text) {
  std::string safe = plain(text);
  for (std::size_t at = 0; (at = safe.find('"', at)) != std::string::npos; at += 4) safe.replace(at, 1, "\\(dq");
  return fmt::format("\"\\&{}\"", safe);
}

std::string capitalised(std::string text) {
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string head(std::string_view path, std::string_view sentence) {
  const std::string name = page_name(path);
  std::string title = name;
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return std::toupper(c); });
  return fmt::format(
      ".\\\" Made by `dtrain help --generate`: see CONTRIBUTING.md.\n.Dd {}\n.Dt {} 1\n.Os\n.Sh NAME\n.Nm {}\n.Nd {}\n",
      DTRAIN_DATE, title, name, plain(sentence));
}

std::string synopsis(const Command& command) {
  std::string text = fmt::format(".Sh SYNOPSIS\n.Nm \"dtrain {}\"\n", command.path), words;
  for (const config::Option& option : command.options.options()) {
    if (!option.positional() || option.hidden) continue;
    if (option.take_words) {
      const std::string name = argument(option.flags);
      words =
          option.required ? fmt::format(".Fl \\-\n.Ar {} ...\n", name) : fmt::format(".Op Fl \\- Ar {} ...\n", name);
    } else if (option.required) {
      text += fmt::format(".Ar {}{}\n", argument(option.flags), option.many ? " ..." : "");
    } else {
      text += fmt::format(".Op Ar {}{}\n", argument(option.flags), option.many ? " ..." : "");
    }
  }
  return text + ".Op Ar options\n" + words;
}

// "text (default the newest)" -> "text", "the newest"; the second is empty where the text names no default.
std::pair<std::string, std::string> without_default(const std::string& help) {
  constexpr std::string_view kLead = " (default ";
  const std::size_t at = help.rfind(kLead);
  if (at == std::string::npos || !help.ends_with(')')) return {help, ""};
  const std::size_t begin = at + kLead.size();
  return {help.substr(0, at), help.substr(begin, help.size() - 1 - begin)};
}

std::string item(const config::Option& option) {
  std::string text = ".It";
  if (option.positional()) {
    text += fmt::format(" Ar {}", argument(option.flags));
  } else {
    bool first = true;
    for (const std::string& spelling : spellings(option)) {
      text += fmt::format("{} Fl {}", first ? "" : " ,", plain(spelling.substr(1)));
      first = false;
    }
    if (!option.is_switch()) text += fmt::format(" Ar {}", argument(option.value));
  }
  const auto [help, fallback] = without_default(option.help);
  text += fmt::format("\n{}.\n", sentences(plain(capitalised(help))));
  const bool shows_value = !option.is_switch() && !option.positional() && !option.by_machine;
  const std::string value = fallback.empty() && shows_value ? option.show() : fallback;
  if (option.required) {
    text += option.required_except.empty() ? "Required.\n"
                                           : fmt::format("Required, except {}.\n", plain(option.required_except));
  }
  if (const std::string range = option.shown_range(); !range.empty()) text += fmt::format("Range: {}.\n", range);
  if (!value.empty() && !option.required)
    text += fmt::format("Default: {}{}\n", plain(value), value.ends_with('.') ? "" : ".");
  if (option.not_from_project && !option.flag_only)
    text += "The file dtrain.toml of the current folder must not set it.\n";
  if (!option.legacy_variable.empty()) text += fmt::format("Also read from\n.Ev {} .\n", option.legacy_variable);
  return text;
}

std::string option_lists(const config::OptionSet& set) {
  std::vector<std::string> titles;
  for (const config::Option& option : set.options()) {
    if (!option.hidden && std::ranges::find(titles, option.group) == titles.end()) titles.push_back(option.group);
  }
  std::string text;
  for (const std::string& title : titles) {
    text += fmt::format(".Ss {}\n.Bl -tag -width Ds\n", title);
    for (const config::Option& option : set.options()) {
      if (option.group == title && !option.hidden) text += item(option);
    }
    text += ".El\n";
  }
  return text;
}

std::string examples(const std::vector<std::string>& lines) {
  if (lines.empty()) return {};
  std::string text = ".Sh EXAMPLES\n";
  for (const std::string& line : lines) text += fmt::format(".Dl {}\n", argument(line));
  return text;
}

std::string see_also(std::vector<std::string> pages) {
  std::ranges::sort(pages);
  std::string text = ".Sh SEE ALSO\n";
  for (std::size_t i = 0; i < pages.size(); ++i)
    text += fmt::format(".Xr {} 1{}\n", page_name(pages[i]), i + 1 < pages.size() ? " ," : "");
  return text;
}

// The first line keeps its indent.
std::string_view without_empty_ends(std::string_view block) {
  const std::size_t begin = std::min(block.find_first_not_of('\n'), block.size());
  return block.substr(begin, block.find_last_not_of('\n') + 1 - begin);
}

std::string verbatim(std::string_view title, const std::string& block) {
  std::string text = fmt::format(".Sh {}\n.Bd -literal\n", title);
  for (const std::string& line : split(without_empty_ends(block), '\n')) text += plain(line) + "\n";
  return text + ".Ed\n";
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return c == '-' ? ' ' : std::toupper(c); });
  return text;
}

std::string command_list(const CommandTree& tree) {
  std::string text = ".Sh COMMANDS\n.Bl -tag -width Ds\n";
  for (const auto& command : tree.commands)
    text += fmt::format(".It Xr {} 1\n{}.\n", page_name(command->path), plain(capitalised(command->sentence)));
  return text + ".El\n";
}

}  // namespace

Document manual_page(const CommandTree& tree, const Command& command) {
  std::string text = head(command.path, command.sentence) + synopsis(command);
  text += fmt::format(
      ".Sh DESCRIPTION\n{}.\nCommon options, exit codes and environment variables are described in\n.Xr dtrain 1 "
      ".\n",
      plain(capitalised(command.sentence)));
  text += option_lists(command.options) + examples(command.examples);
  std::vector<std::string> pages = command.see_also;
  pages.emplace_back("");
  std::erase_if(pages, [&](const std::string& page) { return !page.empty() && !tree.find(page); });
  return {Path("man") / (page_name(command.path) + ".1"), text + see_also(pages)};
}

Document manual_page(const CommandTree& tree) {
  std::string text = head("", "train image models on hosts that can join and leave");
  text += ".Sh SYNOPSIS\n.Nm\n.Ar command\n.Op Ar options\n.Sh DESCRIPTION\n";
  text += "Trains image models, and adds and removes machines during training without changing a bit of the result.\n";
  text += command_list(tree) + ".Sh OPTIONS\nAll commands accept these options.\n" + option_lists(tree.global_options);
  for (const std::string& topic : topic_names()) text += verbatim(upper(topic), *topic_text(tree, topic));
  text += examples(first_commands());
  return {"man/dtrain.1",
          text + ".Sh SEE ALSO\n.Xr dtrain\\-train 1 ,\n.Xr dtrain\\-job 5 ,\n.Xr dtrain\\-records 5\n"};
}

}  // namespace dtrain::cli
