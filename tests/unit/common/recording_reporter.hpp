// What a test's code says, in lists.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <dtrain/base/reporter.hpp>

namespace dtrain {

class RecordingReporter final : public Reporter {
 public:
  explicit RecordingReporter(const ReportOptions& options = {}) : options_(options) {}

  const ReportOptions& options() const override { return options_; }
  void answer(std::string_view text) override { answers.emplace_back(text); }
  void answer_json(const Json& document) override { documents.push_back(document); }
  void flush() override {}
  void finish() override {}
  void never_wait_for_readers() override {}
  void note(std::string_view line) override { notes.emplace_back(line); }
  void detail(std::string_view) override {}
  void warn(std::string_view what) override { warnings.emplace_back(what); }
  void pass_on(std::string_view) override {}
  void progress(std::string_view) override {}
  bool draws_progress() const override { return false; }
  std::string paint_answer(Style, std::string_view text) const override { return std::string(text); }
  int columns() const override { return 80; }
  std::unique_ptr<Reporter> reopened() const override { return nullptr; }

  std::vector<std::string> answers, notes, warnings;
  std::vector<Json> documents;

 private:
  ReportOptions options_;
};

}  // namespace dtrain
