// What `dtrain plot` shows of a run, read from the records of its job folder.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/json.hpp>

#include "step_columns.hpp"

namespace dtrain::plot {

struct CurvePoint {
  double at = 0;  // seconds of training since its begin
  double value = 0;
  double epochs = 0;  // that were trained until then
  double weight = 1;  // in a mean: samples, or seconds of a speed
};

struct MembershipChange {
  enum class Kind { joined, left, lost, resumed };
  double at = 0;
  Kind kind = Kind::joined;
  std::string host;  // empty for resumed
};

// So many workers from then on.
struct Crew {
  double at = 0;
  int workers = 0;
};

// Seconds of training in which no step was made.
struct Pause {
  double from = 0, to = 0;
};

struct RunCurves {
  std::vector<CurvePoint> speed;  // samples a second
  std::vector<CurvePoint> loss, accuracy, validation_loss, validation_accuracy;
  std::vector<CurvePoint> validation_masks;  // of a detector of masks: their average precision
  bool detects = false;                      // validation_accuracy is the average precision of boxes
  std::vector<MembershipChange> changes;     // those after the begin
  std::vector<Crew> crews;
  std::vector<Pause> pauses;  // long ones, at changes of the membership
  double seconds = 0;         // of all of it; the time between a stop and --resume does not count
  double epochs = 0;
  std::optional<double> epoch_loss;  // of training in the newest epoch that ended: a mean of all its samples
  bool diverged = false;
};

// Whether the training ran into numbers that are not finite: its last line has such a loss, which the file writes as
// null, or it ended by one, and then it wrote no line of that step. `reason`: that of its finish event, empty for one
// that has not ended.
bool has_diverged(const StepColumns& steps, std::string_view reason);

// `steps` of steps.jsonl, `events` of events.jsonl. Events that say nothing of it are passed over.
RunCurves curves_of(const StepColumns& steps, std::span<const Json> events);

}  // namespace dtrain::plot
