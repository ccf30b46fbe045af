// Text that a user's shell on a host prints at login, before it runs a command.
#pragma once

#include <string>
#include <string_view>

namespace dtrain::net::ssh {

// Hint of errors that quote such text.
inline constexpr const char* kLoginTextHint =
    "the user's shell there prints this at login: let .bashrc print only in interactive shells";

// Line that shell_line() has the shell print before the output of the command.
inline constexpr std::string_view kOutputMark = "dtrain-output";

// The text on one line of printable characters, for messages.
std::string on_one_line(std::string_view text);

// Separates what the command writes from what the shell printed before.
class LoginText {
 public:
  // Takes the next piece, cut anywhere, and returns the part that the command wrote.
  std::string take(std::string_view piece);
  bool is_over() const { return over_; }
  std::string first_line() const;  // of the shell's text, for messages; not empty lines

 private:
  std::string shown_;  // beginning of the shell's text
  std::string held_;   // end of the shell's text, which may be the beginning of the mark
  bool over_ = false;  // the mark has come
};

}  // namespace dtrain::net::ssh
