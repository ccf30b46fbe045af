// What an Observer hears, as values and as JSON: {"event": "step" | "epoch" | "evaluation" | "checkpoint" | "warning" |
// "lost", ...}; a warning with "note": true is a note, and "top_k_accuracy" is there where the run reports one. The
// worker that speaks for the job forwards it so, and the process that writes the job's log replays it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <variant>

#include <dtrain/base/json.hpp>
#include <dtrain/elastic/membership.hpp>
#include <dtrain/train/trainer.hpp>

namespace dtrain::train {

struct SavedReport {
  Path path;
};
struct WarningReport {
  std::string text;
  bool is_note = false;  // and no warning: Observer::on_note()
};
struct LostReport {
  std::string text;
};
using ReportEvent =
    std::variant<StepReport, EpochReport, EvaluationReport, SavedReport, ShardsReport, WarningReport, LostReport>;

void tell(Observer& observer, const ReportEvent& event);

// Exact round trips; a number that is not finite comes back as NaN. Reading throws DataError for anything else.
Json to_json(const ReportEvent& event);
ReportEvent report_from_json(const Json& json);

// Tells the observer what the JSON says.
void replay(const Json& event, Observer& observer);

// An observer that turns every report back into an event; first batches are not reported.
class EventObserver : public Observer {
 public:
  virtual void on_event(const ReportEvent& event) = 0;
  void on_first_batch(const data::Batch&) override {}
  void on_step(const StepReport& report) final { on_event(report); }
  void on_epoch(const EpochReport& report) final { on_event(report); }
  void on_evaluation(const EvaluationReport& report) final { on_event(report); }
  void on_checkpoint(const Path& path) final { on_event(SavedReport{path}); }
  void on_shards(const ShardsReport& report) final { on_event(report); }
  void on_note(const std::string& text) final { on_event(WarningReport{text, true}); }
  void on_warning(const std::string& text) final { on_event(WarningReport{text}); }
  void on_lost(const std::string& text) final { on_event(LostReport{text}); }
};

// The worker's end: hands everything to the membership, which must outlive this.
class ReportForwarder final : public EventObserver {
 public:
  explicit ReportForwarder(elastic::Membership& membership) : membership_(membership) {}
  void on_event(const ReportEvent& event) override { membership_.report(to_json(event)); }

 private:
  elastic::Membership& membership_;
};

// The log's end: passes on what is news, so that what two ranks reported one after the other is heard once, in order.
// A file is news once. Warnings carry no date: they are as new as the step, epoch or evaluation that was reported
// before them. The observer must outlive this.
class OnlyNews final : public EventObserver {
 public:
  explicit OnlyNews(Observer& observer) : observer_(observer) {}
  void on_event(const ReportEvent& event) override;
  void on_first_batch(const data::Batch& batch) override { observer_.on_first_batch(batch); }

 private:
  bool is_news(const ReportEvent& event);

  Observer& observer_;
  std::optional<std::tuple<std::uint32_t, std::uint64_t>> last_step_;  // epoch, step
  std::optional<std::uint32_t> last_epoch_, last_evaluation_;
  std::set<Path> saved_;
  std::optional<std::string> last_warning_;
  bool fresh_ = true;  // whether the last event with a date was news
};

}  // namespace dtrain::train
