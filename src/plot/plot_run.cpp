#include "plot_run.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <ranges>

#include <dtrain/base/event_kind.hpp>

namespace dtrain::plot {
namespace {

constexpr double kLongPause = 5;  // seconds; ordinary changes take a tenth of one

void add_column(const StepColumns& steps, std::string_view name, std::vector<CurvePoint>& points) {
  const StepColumn* const column = steps.find(name);
  if (!column) return;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double value = column->values[i], samples = steps.samples()[i];
    if (!std::isfinite(value)) continue;
    const double weight = name == "speed" && value > 0 ? samples / value : samples;
    points.push_back({steps.at()[i], value, steps.epochs()[i], weight > 0 ? weight : 1});
  }
}

// Empty where no event says that the training ended, or where it went on after that.
std::string reason_of_end(const StepColumns& steps, std::span<const Json> events) {
  constexpr double kSlack = 1;  // seconds by which a line of the last steps may come behind the end
  double latest = steps.last_time() - kSlack;
  for (const Json& event : std::views::reverse(events)) {
    const std::optional<EventKind> kind = event_kind(event);
    const double at = parse_time(event.find_text("time")).value_or(0);
    if (kind == EventKind::finish) return at >= latest ? event.find_text("reason") : std::string();
    if (kind != EventKind::goodput) latest = std::max(latest, at);  // goodput is a sum of what has ended
  }
  return {};
}

class EventReader {
 public:
  EventReader(RunCurves& curves, const TrainingClock& clock) : curves_(curves), clock_(clock) {}

  void take(const Json& event, double time) {
    const double at = clock_.at(time);
    const std::optional<EventKind> kind = event_kind(event);
    if (kind == EventKind::evaluation) {
      const Json* epoch = event.find("epoch");  // that was trained last, from 0
      const double epochs = epoch && epoch->is_number() ? epoch->as_number() + 1 : 0;
      add_number(event, "loss", at, epochs, curves_.validation_loss);
      add_number(event, "accuracy", at, epochs, curves_.validation_accuracy);
      if (event.find("boxes")) curves_.detects = true;
      if (const Json* const masks = event.find("masks")) add_number(*masks, "ap", at, epochs, curves_.validation_masks);
    } else if (kind == EventKind::epoch) {
      const Json* const loss = event.find("loss");
      if (loss && loss->is_number()) curves_.epoch_loss = loss->as_number();
    } else if ((kind == EventKind::lost || kind == EventKind::failed) && !is_host_refusal(event)) {
      // The loss of weights has no host.
      if (const std::string host = event.find_text("host"); !host.empty()) lost_[host] = true;
    } else if (kind == EventKind::commit) {
      commit(event, at);
    } else if (kind == EventKind::generation) {
      const Json* const pause = event.find("pause_seconds");
      if (pause && pause->is_number()) add_pause(time - pause->as_number(), time);
    }
  }

 private:
  // By the machine's clock. The part before the start that the pause belongs to is no time of training, and neither is
  // the part behind the last line of a start.
  void add_pause(double from, double to) {
    const Pause pause{.from = std::max(clock_.at(from), clock_.begin_of_start(to)), .to = clock_.at(to)};
    if (pause.to - pause.from > kLongPause) curves_.pauses.push_back(pause);
  }

  // A detector's evaluation has no loss, and what is not finite is written as null.
  static void add_number(const Json& event, const char* key, double at, double epochs,
                         std::vector<CurvePoint>& points) {
    const Json* const value = event.find(key);
    if (value && value->is_number()) points.push_back({at, value->as_number(), epochs});
  }

  void commit(const Json& event, double at) {
    const Json* const list = event.find("members");
    if (!list || !list->is_array()) return;
    std::vector<std::string> members;
    for (const Json& host : list->as_array()) {
      if (host.is_string()) members.push_back(host.as_string());
    }
    curves_.crews.push_back({at, static_cast<int>(members.size())});
    if (began_) {
      for (const std::string& host : without(members, members_)) add(at, MembershipChange::Kind::joined, host);
      for (const std::string& host : without(members_, members)) {
        add(at, lost_[host] ? MembershipChange::Kind::lost : MembershipChange::Kind::left, host);
      }
    }
    began_ = true;
    lost_.clear();
    members_ = std::move(members);
  }

  static std::vector<std::string> without(const std::vector<std::string>& some,
                                          const std::vector<std::string>& others) {
    std::vector<std::string> rest;
    std::ranges::copy_if(some, std::back_inserter(rest),
                         [&](const std::string& host) { return std::ranges::find(others, host) == others.end(); });
    return rest;
  }

  void add(double at, MembershipChange::Kind kind, const std::string& host) {
    curves_.changes.push_back({at, kind, host});
  }

  RunCurves& curves_;
  const TrainingClock& clock_;
  std::vector<std::string> members_;
  std::map<std::string, bool> lost_;  // since the last change
  bool began_ = false;
};

}  // namespace

bool has_diverged(const StepColumns& steps, std::string_view reason) {
  const StepColumn* const loss = steps.find("loss");
  if (loss && !loss->values.empty() && !std::isfinite(loss->values.back())) return true;
  // The words of every train::Diverged, which src/train/loop puts together in generation.cpp and trainer.cpp; jobs say
  // the host before it.
  return reason.find(" is not finite at epoch ") != reason.npos;
}

RunCurves curves_of(const StepColumns& steps, std::span<const Json> events) {
  RunCurves curves;
  add_column(steps, "speed", curves.speed);
  add_column(steps, "loss", curves.loss);
  add_column(steps, "accuracy", curves.accuracy);
  curves.diverged = has_diverged(steps, reason_of_end(steps, events));
  curves.epochs = steps.most_epochs();
  const TrainingClock& clock = steps.clock();
  EventReader reader(curves, clock);
  for (const Json& event : events) {
    const auto time = parse_time(event.find_text("time"));
    if (time && clock.began_by(*time)) reader.take(event, *time);
  }
  if (curves.crews.empty()) curves.crews.push_back({0, 1});  // a training in one process
  for (const double at : clock.resumed()) curves.changes.push_back({at, MembershipChange::Kind::resumed, ""});
  curves.seconds = clock.now();
  return curves;
}

}  // namespace dtrain::plot
