// What this process tells its observer while it is rank 0 of one generation after the other: everything once.
#pragma once

#include <dtrain/train/report_json.hpp>

namespace dtrain::train {

class Voice {
 public:
  explicit Voice(Observer& observer) : news_(observer) {}

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
