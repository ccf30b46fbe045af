// Reports to the observer while this process is rank 0, each once, over all generations.
#pragma once

#include <dtrain/train/report_json.hpp>

namespace dtrain::train {

class RankZeroReporter {
 public:
  explicit RankZeroReporter(Observer& observer) : news_(observer) {}

  void show_first(const data::Batch& batch) {
    if (!shown_) news_.on_first_batch(batch);
    shown_ = true;
  }
  void tell(const std::vector<ReportEvent>& events) {
    for (const ReportEvent& event : events) news_.on_event(event);
  }

 private:
  OnlyNews news_;
  bool shown_ = false;
};

}  // namespace dtrain::train
