// How every part of the program speaks to the person or program that started it, whatever listens: a terminal, a file,
// a pipe or a test. Answers are what a command was asked for; everything else accompanies them.
//
// Threads: warn(), note(), detail() and pass_on() may be called from any thread, the rest from one.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>

namespace dtrain {

// What every command lets its user choose about its output.
struct ReportOptions {
  bool json = false;     // answers as JSON documents
  bool quiet = false;    // no notes
  bool verbose = false;  // details too
  std::string color = "auto";
};

enum class Style { plain, heading, error, warning };

class Reporter {
 public:
  virtual ~Reporter() = default;

  virtual const ReportOptions& options() const = 0;
  bool json() const { return options().json; }

  virtual void answer(std::string_view text) = 0;      // one newline is added
  virtual void answer_json(const Json& document) = 0;  // one line, visible to the reader at once
  virtual void flush() = 0;                            // makes every answer so far visible to the reader
  // Throws Error when the answers could not be written (a full disk, a closed descriptor).
  virtual void finish() = 0;
  // From now on a thread writes, so that a reader that stands still (Ctrl-S, a pager) holds up none of these functions
  // for long; text that fills 64 MiB then is lost. Call it before other threads use this object.
  virtual void never_wait_for_readers() = 0;

  virtual void note(std::string_view line) = 0;     // progress of the work; not with quiet
  virtual void detail(std::string_view line) = 0;   // only with verbose
  virtual void warn(std::string_view what) = 0;     // always
  virtual void pass_on(std::string_view line) = 0;  // always: a line that another program wrote to its stderr

  // The one line that is redrawn in place; any other line erases it first. Plain text; empty erases it.
  virtual void progress(std::string_view line) = 0;
  virtual bool draws_progress() const = 0;

  // `text` in this style where answers are read on a terminal with colours, else as it is.
  virtual std::string paint_answer(Style style, std::string_view text) const = 0;
  virtual int columns() const = 0;  // width of the terminal that shows notes; 80 where there is none

  // One with the same options for the standard streams as they are now, after a process replaced them by a log: each
  // line begins with its time, as in the other logs of a job.
  virtual std::unique_ptr<Reporter> reopened() const = 0;
};

}  // namespace dtrain
