#include "job_view.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <dtrain/base/event_kind.hpp>

#include "explain.hpp"
#include "plot/step_columns.hpp"

namespace dtrain::board {
namespace {

using Place = std::pair<std::string, std::int64_t>;  // host, slot

// Seconds from the first step on. Workers say their steps a few times a second, which measures no shorter training.
constexpr double kShortestMeasured = 1;

struct Span {
  double from = 0, to = 0;
  std::string state;
  std::int64_t worker = 0, rank = -1;
};
struct Mark {
  double at = 0;
  std::string kind, note;
};
struct Lane {
  std::vector<Span> spans;
  std::vector<Mark> marks;
  bool open = false;  // the last span goes on
};
struct OpenPause {
  double from = 0;
  std::string reason{};
};
struct JournalMember {
  std::int64_t worker = 0;
  Place place;
};

// A clock that is set back does not turn the job back: from then on it counts from where it stood.
class ForwardClock {
 public:
  double at(double time) {
    if (time + shift_ < last_) shift_ = last_ - time;
    return last_ = time + shift_;
  }

 private:
  double last_ = 0, shift_ = 0;
};

std::int64_t whole_number(const Json& json, std::string_view name, std::int64_t otherwise = 0) {
  return static_cast<std::int64_t>(member_number(json, name, static_cast<double>(otherwise)));
}

Place place_of(const Json& json) { return {member_text(json, "host"), whole_number(json, "slot")}; }

// Members by generation, in the order of their ranks. Generations of a run before this one have the same numbers: the
// last entry of the file holds, and the places of workers matter more than their numbers.
std::map<std::int64_t, std::vector<JournalMember>> read_members(std::span<const Json> journal) {
  std::map<std::int64_t, std::vector<JournalMember>> all;
  for (const Json& entry : journal) {
    const Json* const members = entry.is_object() ? entry.find("members") : nullptr;
    if (!members || !members->is_array() || member_text(entry, "state") != "committed") continue;
    auto& list = all[whole_number(entry, "generation")];
    list.clear();
    for (const Json& member : members->as_array()) list.push_back({whole_number(member, "worker"), place_of(member)});
  }
  return all;
}

class History {
 public:
  explicit History(std::span<const Json> journal) : members_(read_members(journal)) {}

  void take(const Json& event, double at) {
    const std::optional<EventKind> kind = event_kind(event);
    begin_ = begin_ ? begin_ : at;
    if (begins_job(event)) begin_again(at);
    end_ = std::max(end_, at);
    over_ = over_ && kind == EventKind::goodput;
    if (kind == EventKind::host_starting || kind == EventKind::preparing) {
      begin_span({member_text(event, "host"), 0}, "preparing", at, 0);
    } else if (kind == EventKind::worker_starting) {
      begin_span(place_of(event), "preparing", at, whole_number(event, "worker"));
    } else if (kind == EventKind::worker_ready) {
      begin_span(place_of(event), "joined", at, whole_number(event, "worker"));
    } else if (kind == EventKind::commit) {
      commit(event, at);
    } else if (kind == EventKind::generation) {
      generation(event, at);
    } else if (kind == EventKind::freeze || kind == EventKind::hold) {
      if (!pause_) pause_ = OpenPause{.from = at};
      pause_->reason = member_text(event, "reason");
    } else if (kind == EventKind::failed) {
      leave(event, at, is_host_refusal(event) ? "refused" : "lost");
    } else if (kind == EventKind::left || kind == EventKind::done || kind == EventKind::exited) {
      leave(event, at, "left");
    } else if (kind == EventKind::host_down) {
      const std::string host = member_text(event, "host");
      const Place first{host, std::numeric_limits<std::int64_t>::min()};
      for (auto next = lanes_.lower_bound(first); next != lanes_.end() && next->first.first == host; ++next)
        close(next->second, at);
    } else if (kind == EventKind::straggler) {
      add_straggler(event, at);
    } else if (kind == EventKind::goodput) {
      if (start_trains_ || goodput_.is_null()) goodput_ = member_number(event, "percent");
      is_summed_up_ = true;
      sent_bytes_ += std::max(0.0, member_number(event, "sent_bytes"));
    } else if (kind == EventKind::finish) {
      close_all(at);
      end_start(at);
      over_ = true;
    }
  }

  Json json(double now) {
    const double end = over_ ? end_ : std::max(end_, now);
    for (auto& [place, lane] : lanes_)
      if (lane.open) lane.spans.back().to = end;
    if (!over_) end_start(end);
    // A goodput event speaks of one start, and a start that was killed wrote none.
    if (starts_ > 1) goodput_ = Json();
    Json view = Json::object({{"begin", begin_.value_or(0)}, {"end", end}, {"over", over_}});
    Json lanes = Json::array();
    for (const auto& [place, lane] : lanes_) lanes.push_back(lane_json(place, lane));
    view["lanes"] = std::move(lanes);
    view["goodput_percent"] = goodput(end);
    view["estimated"] = goodput_.is_null();
    view["generations"] = std::move(generations_);
    view["pauses"] = std::move(pauses_);
    view["stragglers"] = std::move(stragglers_);
    view["pause_seconds"] = pause_seconds_;
    view["starts"] = starts_;
    view["sent_bytes"] = sent_bytes_;              // until the last end of the job
    view["sent_at_least"] = has_uncounted_bytes_;  // a start that ended did not say how many it sent
    view["worker_seconds"] = worker_seconds();
    return view;
  }

 private:
  void begin_span(const Place& place, const char* state, double at, std::int64_t worker, std::int64_t rank = -1) {
    Lane& lane = lanes_[place];
    if (lane.open) {
      Span& last = lane.spans.back();
      if (last.state == state && last.worker == worker && last.rank == rank) return;
      last.to = at;
    }
    lane.spans.push_back({.from = at, .to = at, .state = state, .worker = worker, .rank = rank});
    lane.open = true;
  }

  static void close(Lane& lane, double at) {
    if (lane.open) lane.spans.back().to = at;
    lane.open = false;
  }

  // A job that was killed before lived until its last event.
  void begin_again(double at) {
    close_all(end_);
    end_start(end_);
    if (trains_) dead_seconds_ += at - end_;
    if (start_trains_ && !is_summed_up_) has_uncounted_bytes_ = true;
    start_trains_ = is_summed_up_ = false;
    start_began_ = at;
  }

  // One that made no step trained at no time, its pauses included.
  void end_start(double at) {
    const double before = pause_seconds_;
    end_pause(at);
    if (trains_ && start_began_ && !start_trains_) {
      dead_seconds_ += at - *start_began_;
      pause_before_steps_ += pause_seconds_ - before;
    }
    start_began_.reset();
  }

  // A pause that no generation ended, which would have said how long it was.
  void end_pause(double at) {
    if (!pause_) return;
    const double from = std::min(pause_->from, at);
    pauses_.push_back(
        Json::object({{"from", from}, {"to", at}, {"reason", pause_->reason}, {"parts", Json::object({})}}));
    pause_seconds_ += at - from;
    pause_.reset();
  }

  void close_all(double at) {
    for (auto& [place, lane] : lanes_) close(lane, at);
  }

  void leave(const Json& event, double at, const char* how) {
    Lane& lane = lanes_[place_of(event)];
    close(lane, at);
    lane.marks.push_back({at, how, member_text(event, "reason")});
  }

  std::vector<JournalMember> members_of(const Json& event) const {
    const auto known = members_.find(whole_number(event, "generation"));
    const Json* const hosts = event.find("members");
    if (!hosts || !hosts->is_array()) return {};
    if (known != members_.end() && known->second.size() == hosts->as_array().size()) return known->second;
    std::vector<JournalMember> members;
    std::map<std::string, std::int64_t> slots;
    for (const Json& host : hosts->as_array()) {
      const std::string name = host.is_string() ? host.as_string() : host.dump();
      members.push_back({0, {name, slots[name]++}});
    }
    return members;
  }

  void commit(const Json& event, double at) {
    const std::vector<JournalMember> members = members_of(event);
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      const JournalMember& member = members[rank];
      begin_span(member.place, "training", at, member.worker, static_cast<std::int64_t>(rank));
    }
    std::set<Place> trains;
    for (const JournalMember& member : members) trains.insert(member.place);
    for (const Place& place : trained_) {
      Lane& lane = lanes_[place];
      if (!trains.contains(place) && lane.open && lane.spans.back().state == "training") close(lane, at);
    }
    trained_ = std::move(trains);
  }

  void generation(const Json& event, double at) {
    const double pause = member_number(event, "pause_seconds");
    Json row = Json::object({{"generation", whole_number(event, "generation")},
                             {"at", at},
                             {"workers", whole_number(event, "workers")},
                             {"pause_seconds", pause},
                             {"reason", member_text(event, "reason")}});
    const Json* const parts = event.find("seconds");
    row["parts"] = parts && parts->is_object() ? *parts : Json::object();
    pauses_.push_back(Json::object(
        {{"from", at - pause}, {"to", at}, {"reason", member_text(event, "reason")}, {"parts", row.at("parts")}}));
    generations_.push_back(std::move(row));
    pause_seconds_ += pause;
    pause_.reset();  // this event has its length
    if (!start_trains_) first_step(at, pause);
  }

  // The first step of a start, before which a pause could cost no training.
  void first_step(double at, double pause) {
    start_trains_ = true;
    ++starts_;
    if (trains_) {
      pause_before_steps_ += pause;
      dead_seconds_ += start_began_ ? at - *start_began_ : 0;
      return;
    }
    trains_ = at;
    pause_before_steps_ = pause_seconds_;
  }

  void add_straggler(const Json& event, double at) {
    Json row = Json::object({{"at", at}});
    for (const char* name : {"worker", "host", "score", "compute_seconds", "median_seconds"})
      if (const Json* value = event.find(name)) row[name] = *value;
    stragglers_.push_back(std::move(row));
  }

  static Json lane_json(const Place& place, const Lane& lane) {
    Json spans = Json::array(), marks = Json::array();
    for (const Span& span : lane.spans) {
      spans.push_back(Json::object({{"from", span.from},
                                    {"to", span.to},
                                    {"state", span.state},
                                    {"worker", span.worker},
                                    {"rank", span.rank >= 0 ? Json(span.rank) : Json()}}));
    }
    for (const Mark& mark : lane.marks)
      marks.push_back(Json::object({{"at", mark.at}, {"kind", mark.kind}, {"note", mark.note}}));
    return Json::object({{"host", place.first}, {"slot", place.second}, {"spans", spans}, {"marks", marks}});
  }

  double worker_seconds() const {
    double sum = 0;
    for (const auto& [place, lane] : lanes_) {
      for (const Span& span : lane.spans) sum += span.state == "training" ? span.to - span.from : 0;
    }
    return sum;
  }

  // Null: it was not measured. A coordinator that heard of steps only once says null, an older one 0.
  Json goodput(double end) const {
    const double seconds = trains_ ? end - *trains_ - dead_seconds_ : 0;
    if (trains_ && seconds < kShortestMeasured) return {};
    if (goodput_.is_null()) return trains_ ? estimated_goodput(seconds) : Json();
    return goodput_.as_number() > 0 ? goodput_ : Json();
  }

  // Without the pause before the first step of each start.
  double estimated_goodput(double seconds) const {
    const double paused = pause_seconds_ - pause_before_steps_;
    return 100 * std::clamp(1 - paused / seconds, 0.0, 1.0);
  }

  const std::map<std::int64_t, std::vector<JournalMember>> members_;
  std::map<Place, Lane> lanes_;
  std::set<Place> trained_;  // members of the last commit
  std::optional<double> begin_, trains_;
  std::optional<OpenPause> pause_;  // the one that goes on
  double end_ = 0, dead_seconds_ = 0, pause_seconds_ = 0, pause_before_steps_ = 0, sent_bytes_ = 0;
  std::optional<double> start_began_;                 // by its first list of hosts; unset once it has ended
  std::int64_t starts_ = 0;                           // those that made a step
  bool start_trains_ = false, is_summed_up_ = false;  // the newest start made steps, and wrote its goodput
  bool over_ = false, has_uncounted_bytes_ = false;
  Json generations_ = Json::array(), pauses_ = Json::array(), stragglers_ = Json::array(), goodput_;
};

}  // namespace

Json job_view(std::span<const Json> events, std::span<const Json> journal, double now) {
  History history(journal);
  ForwardClock clock;
  for (const Json& event : events) {
    if (const auto at = plot::parse_time(member_text(event, "time"))) history.take(event, clock.at(*at));
  }
  return history.json(clock.at(now));
}

}  // namespace dtrain::board
