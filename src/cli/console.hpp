// What the program says and where: answers on stdout, everything else on stderr; colour and redrawing only for
// terminals.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>

namespace dtrain::cli {

// The options that every command takes.
struct GlobalOptions {
  bool json = false;
  bool quiet = false;
  bool verbose = false;
  std::string color = "auto";
};

enum class Style { plain, heading, error, warning };

// One for the program, used from one thread; only warning() may come from any. Decides once per stream: a terminal,
// TERM not dumb, NO_COLOR empty.
class Console {
 public:
  explicit Console(const GlobalOptions& options);

  const GlobalOptions& options() const { return options_; }
  bool json() const { return options_.json; }
  bool verbose() const { return options_.verbose; }
  bool draws_progress() const { return draws_progress_; }
  int columns() const;  // of the terminal at stderr; 80 where there is none

  void answer(std::string_view text);      // stdout, one newline added
  void answer_json(const Json& document);  // stdout, one line, at once
  void flush();                            // whoever reads stdout has all answers now
  // Throws Error when stdout did not take what was said (a full disk, a closed descriptor).
  void finish();

  void log(std::string_view line);      // stderr; not with --quiet
  void detail(std::string_view line);   // stderr; only with --verbose
  void warning(std::string_view what);  // stderr, always
  void pass_on(std::string_view line);  // stderr, always: what another program said there
  void error(const Error& error);       // stderr; one JSON document with --json

  // The one line that is redrawn in place; every other line on stderr erases it first. Plain text, cut to the
  // terminal's width. Empty: erase.
  void redraw(std::string_view line);

  std::string paint_answer(Style style, std::string_view text) const;
  std::string paint_note(Style style, std::string_view text) const;

 private:
  void write_line(std::string_view line);
  void draw(std::string_view line);  // with the mutex
  GlobalOptions options_;
  bool color_answers_ = false, color_notes_ = false, draws_progress_ = false;
  std::mutex mutex_;
  bool line_is_drawn_ = false;  // guarded by mutex_
};

}  // namespace dtrain::cli
