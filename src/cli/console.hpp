// What the program says and where: answers on stdout, everything else on stderr; colour and redrawing only for
// terminals.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <dtrain/base/mutex.hpp>
#include <dtrain/base/reporter.hpp>

#include "output_queue.hpp"

namespace dtrain::cli {

// Decides once per stream: a terminal, TERM not dumb, NO_COLOR empty.
class Console final : public Reporter {
 public:
  enum class Streams { of_user, log };  // log: each line begins with its time

  explicit Console(const ReportOptions& options, Streams streams = Streams::of_user);

  const ReportOptions& options() const override { return options_; }
  void set_json(bool json) { options_.json = json; }  // before the first answer
  void answer(std::string_view text) override;
  void answer_json(const Json& document) override;
  void flush() override;
  void finish() override;
  void never_wait_for_readers() override;
  void note(std::string_view line) override;
  void detail(std::string_view line) override;
  void warn(std::string_view what) override;
  void pass_on(std::string_view line) override;
  void progress(std::string_view line) override;  // cut to the terminal's width
  bool draws_progress() const override { return draws_progress_; }
  std::string paint_answer(Style style, std::string_view text) const override;
  int columns() const override;
  std::unique_ptr<Reporter> reopened() const override;

  void error(const Error& error);  // stderr; one JSON document with --json

 private:
  std::string paint_note(Style style, std::string_view text) const;
  void write_line(std::string_view line);
  void write(int fd, std::string text);
  void draw(std::string_view line) DTRAIN_REQUIRES(mutex_);
  ReportOptions options_;
  Streams streams_;
  bool color_answers_ = false, color_notes_ = false, draws_progress_ = false;
  Mutex mutex_;
  bool line_is_drawn_ DTRAIN_GUARDED_BY(mutex_) = false;
  std::unique_ptr<OutputQueue> queue_;  // set once, while one thread uses this object; null: stdio writes
};

}  // namespace dtrain::cli
