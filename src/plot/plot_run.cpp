#include "plot_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::plot {
namespace {

// Times of the clock, with those between a stop and the next begin taken out.
class Watch {
 public:
  explicit Watch(std::span<const Json> steps) {
    for (const Json& line : steps) {
      const double time = seconds_of_time(line.at("time").as_string());
      if (line.find("begins") || stretches_.empty()) {
        stretches_.push_back({time, time, elapsed()});
      } else {
        stretches_.back().end = std::max(stretches_.back().end, time);
      }
    }
  }

  struct Stretch {
    double begin, end;
    double before;  // seconds of training until it began
  };
  const std::vector<Stretch>& stretches() const { return stretches_; }
  double elapsed() const {
    return stretches_.empty() ? 0 : stretches_.back().before + stretches_.back().end - stretches_.back().begin;
  }
  bool began_by(double time) const { return !stretches_.empty() && time >= stretches_[0].begin; }
  double at(double time) const {
    const Stretch* in = &stretches_[0];
    for (const Stretch& stretch : stretches_) {
      if (stretch.begin <= time) in = &stretch;
    }
    return in->before + std::clamp(time, in->begin, in->end) - in->begin;
  }

 private:
  std::vector<Stretch> stretches_;
};

// Steps count from 0 inside the epoch.
double epochs_of_step(const Json& line) {
  const Json *epoch = line.find("epoch"), *step = line.find("step"), *steps = line.find("steps");
  if (!epoch || !step || !steps || steps->as_number() <= 0) return 0;
  return epoch->as_number() + (step->as_number() + 1) / steps->as_number();
}

void add_step(const Json& line, double at, RunCurves& curves) {
  const double seconds = line.at("seconds").as_number(), epochs = epochs_of_step(line);
  if (seconds > 0) curves.speed.push_back({at, line.at("samples").as_number() / seconds, epochs});
  curves.loss.push_back({at, line.at("loss").as_number(), epochs});
  curves.accuracy.push_back({at, line.at("accuracy").as_number(), epochs});
  curves.epochs = std::max(curves.epochs, epochs);
}

class EventReader {
 public:
  EventReader(RunCurves& curves) : curves_(curves) {}

  void take(const Json& event, double at) {
    const std::string& kind = event.at("event").as_string();
    if (kind == "evaluation") {
      const Json* epoch = event.find("epoch");  // that was trained last, from 0
      const double epochs = epoch ? epoch->as_number() + 1 : 0;
      curves_.validation_loss.push_back({at, event.at("loss").as_number(), epochs});
      curves_.validation_accuracy.push_back({at, event.at("accuracy").as_number(), epochs});
    } else if (kind == "lost" || kind == "failed") {
      lost_[event.at("host").as_string()] = true;
    } else if (kind == "commit") {
      commit(event, at);
    }
  }

 private:
  void commit(const Json& event, double at) {
    std::vector<std::string> members;
    for (const Json& host : event.at("members").as_array()) members.push_back(host.as_string());
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
  std::vector<std::string> members_;
  std::map<std::string, bool> lost_;  // since the last change
  bool began_ = false;
};

}  // namespace

double seconds_of_time(const std::string& text) {
  std::tm parts{};
  const char* const rest = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (!rest || !text.ends_with('Z')) throw DataError(fmt::format("'{}' is no time", text));
  const std::string_view digits(rest, text.c_str() + text.size() - 1);
  const auto fraction = parse_number(fmt::format("0{}", digits));
  if (!fraction) throw DataError(fmt::format("'{}' is no time", text));
  return static_cast<double>(::timegm(&parts)) + *fraction;
}

RunCurves curves_of(std::span<const Json> steps, std::span<const Json> events) {
  RunCurves curves;
  const Watch watch(steps);
  for (const Json& line : steps) {
    const double time = seconds_of_time(line.at("time").as_string());
    if (!line.find("begins")) add_step(line, watch.at(time), curves);
  }
  EventReader reader(curves);
  for (const Json& event : events) {
    const double time = seconds_of_time(event.at("time").as_string());
    if (watch.began_by(time)) reader.take(event, watch.at(time));
  }
  if (curves.crews.empty()) curves.crews.push_back({0, 1});  // a training in one process
  for (std::size_t i = 1; i < watch.stretches().size(); ++i)
    curves.changes.push_back({watch.stretches()[i].before, MembershipChange::Kind::resumed, ""});
  curves.seconds = watch.elapsed();
  return curves;
}

}  // namespace dtrain::plot
