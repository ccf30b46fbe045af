// How hosts and commands are written down: for messages, and for the shell on the other side.
#include <fmt/format.h>

#include <algorithm>

#include <dtrain/net/ssh.hpp>

#include "login_text.hpp"

namespace dtrain::net {
namespace {

constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
constexpr std::string_view kDigits = "0123456789";

bool is_one_of(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

bool is_plain(char c) { return is_one_of(c, kLetters) || is_one_of(c, kDigits) || is_one_of(c, "_-+:,./@"); }

bool is_variable_name(std::string_view name) {
  const auto fits = [](char c) { return is_one_of(c, kLetters) || is_one_of(c, kDigits) || c == '_'; };
  return !name.empty() && !is_one_of(name[0], kDigits) && std::ranges::all_of(name, fits);
}

void refuse_nul(std::string_view text) {
  if (text.find('\0') == std::string_view::npos) return;
  throw UsageError("a command for another host holds a NUL byte", "no program can be given one: leave it out");
}

// `export NAME='value'`
std::string export_of(const std::string& variable) {
  const std::size_t equals = variable.find('=');
  const std::string name = variable.substr(0, equals);
  if (equals == std::string::npos || !is_variable_name(name)) {
    throw UsageError(fmt::format("'{}' is no environment variable that a shell takes", variable),
                     "write NAME=value, with letters, digits and _ in the name");
  }
  return fmt::format("export {}={}", name, shell_quoted(variable.substr(equals + 1)));
}

// `exec` makes the program the process that gets the signals, and whose end sshd reports.
std::string program_line(const std::vector<std::string>& argv) {
  if (argv.empty()) throw UsageError("no command was given for the other host");
  if (argv[0].starts_with('-')) {
    throw UsageError(fmt::format("'{}' cannot be a program's name on another host", argv[0]),
                     "name it with its folder, as in ./-name");
  }
  std::string line = "exec";
  for (const std::string& word : argv) line += ' ' + shell_quoted(word);
  return line;
}

}  // namespace

std::string shell_quoted(std::string_view word) {
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_line(const SshCommand& command) {
  std::string line;
  if (!command.folder.empty()) {
    const bool like_option = command.folder.starts_with('-');  // cd takes "-" for something else
    line += fmt::format("cd {} && ", shell_quoted(like_option ? "./" + command.folder : command.folder));
  }
  for (const std::string& variable : command.environment) line += export_of(variable) + " && ";
  if (command.shell.empty()) {
    line += program_line(command.argv);
  } else {
    line += line.empty() ? command.shell : fmt::format("{{ {}\n}}", command.shell);
  }
  refuse_nul(line);
  return command.skip_login_text ? fmt::format("echo {}; {}", ssh::kOutputMark, line) : line;
}

std::string to_string(const SshTarget& target) {
  const bool v6 = target.host.find(':') != std::string::npos;
  std::string text = target.user.empty() ? "" : target.user + "@";
  text += v6 && target.port != 0 ? fmt::format("[{}]", target.host) : target.host;
  if (target.port != 0) text += fmt::format(":{}", target.port);
  return text;
}

}  // namespace dtrain::net
