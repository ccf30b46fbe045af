// What a program on another machine writes to a stream, as it comes, for the same stream of this process.
#pragma once

#include <string>
#include <string_view>

#include <dtrain/base/output_lines.hpp>

namespace dtrain::cli {

// For a file or a pipe the bytes stay as they are. On a terminal they become OutputLines of printable(): a control
// sequence may come in two pieces, each of them harmless.
class FarText {
 public:
  explicit FarText(bool on_terminal) : on_terminal_(on_terminal) {}
  // Takes the next bytes, and returns what is to be written now.
  std::string take(std::string_view bytes, OutputLines::Time now);
  // The same at the end of the output: a line that has no end.
  std::string end();

 private:
  const bool on_terminal_;
  OutputLines lines_;
};

}  // namespace dtrain::cli
