#include "run.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/event_kind.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/text.hpp>

#include "explain.hpp"
#include "plot/plot_run.hpp"

namespace dtrain::board {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kLongNews = 64 << 10;  // bytes: what was there before the board, and not what a run adds
constexpr double kMostSteps = 1e15;          // more are nonsense in a line
constexpr double kQuiet = 90;                // seconds without a record after which a run is called silent
constexpr std::size_t kRecent = 8;           // lines of the file that the present speed is of

std::vector<Json> objects_of(const std::string& lines) {
  std::vector<Json> objects;
  for (const std::string& line : split(lines, '\n')) {
    if (trim(line).empty()) continue;
    try {
      Json object = Json::parse(line, "a line");
      if (object.is_object()) objects.push_back(std::move(object));
    } catch (const DataError&) {  // torn by a crash or a full disk: the others count
    }
  }
  return objects;
}

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json last_value(const StepLevels& steps, std::string_view name) {
  const plot::StepColumn* const column = steps.tail().find(name);
  return column && !column->values.empty() ? number_or_null(column->values.back()) : Json();
}

// Samples of the last lines by their seconds: a mean of the lines' speeds would count a short line like a long one.
Json recent_speed(const StepLevels& steps) {
  const plot::StepColumn* const speed = steps.tail().find("speed");
  if (!speed) return {};
  const std::vector<double>& all = steps.tail().samples();
  double samples = 0, seconds = 0;
  for (std::size_t row = all.size() - std::min(all.size(), kRecent); row < all.size(); ++row) {
    if (!std::isfinite(speed->values[row]) || speed->values[row] <= 0) continue;
    samples += all[row];
    seconds += all[row] / speed->values[row];
  }
  return seconds > 0 ? Json(samples / seconds) : Json();
}

std::string without_quotes(std::string_view value) {
  if (value.size() >= 2 && value.front() == '"') {
    const std::size_t end = value.find('"', 1);
    if (end != value.npos) return std::string(value.substr(1, end - 1));
  }
  return std::string(trim(value.substr(0, value.find("  ("))));
}

}  // namespace

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string configured(std::string_view toml, std::string_view key) {
  for (const std::string& line : split(toml, '\n')) {
    std::string_view text = trim(line);
    if (text.starts_with('#')) text = trim(text.substr(1));
    if (!text.starts_with(key)) continue;
    text = trim(text.substr(key.size()));
    if (text.starts_with('=')) return without_quotes(trim(text.substr(1)));
  }
  return {};
}

const char* state_of(const RunSigns& signs) {
  if (signs.finished && !signs.held) {
    constexpr int kResumable = 75;
    return signs.exit_code == 0 ? "finished" : signs.exit_code == kResumable ? "stopped" : "failed";
  }
  if (!signs.began) return "waiting";
  if (!signs.held && signs.quiet_seconds > kQuiet) return "silent";
  if (signs.waits) return "waiting";
  return signs.has_steps ? "training" : "preparing";
}

Run::Run(std::string folder, std::string name)
    : folder_(std::move(folder)),
      name_(std::move(name)),
      id_(sha256_hex(bytes_of(folder_)).substr(0, 12)),
      steps_tail_(folder_ + "/steps.jsonl"),
      events_tail_(folder_ + "/events.jsonl"),
      journal_tail_(folder_ + "/journal.jsonl") {
  forget_events();
}

bool Run::News::any() const { return steps.any() || events.any() || journal.any() || has_settings; }

Run::News Run::fetch(Files& files) {
  News& news = fetched_;  // what one file gave stays where the next one cannot be read: no tail gives it twice
  if (!news.steps.any()) news.steps = steps_tail_.next(files);
  if (!news.events.any()) news.events = events_tail_.next(files);
  // What stands in the other two files changes with these.
  if (looked_ && !news.any()) return std::exchange(fetched_, {});
  if (!news.journal.any()) news.journal = journal_tail_.next(files);
  const std::string path = folder_ + "/train.toml";
  if (std::string version = files.version(path); version != settings_version_) {
    news.settings = read_small(files, path);
    settings_version_ = std::move(version);
    news.has_settings = true;
  }
  looked_ = true;
  return std::exchange(fetched_, {});
}

void Run::apply(News news, double seen) {
  const bool has_lines = !news.steps.lines.empty() || !news.events.lines.empty();
  if (news.has_settings) {
    settings_ = std::move(news.settings);
    network_ = configured(settings_, "network");
    epochs_total_ = parse_number(configured(settings_, "num-epochs"));
  }
  if (news.steps.restarted) steps_ = {};
  const bool began = steps_.tail().clock().begins() > 0;
  steps_.add(news.steps.lines, news.steps.at);
  if (!began && steps_.tail().clock().begins() > 0) retake_validations();
  long_news_ = long_news_ || news.steps.lines.size() > kLongNews;
  if (long_news_ && !news.more()) {
    steps_.fit();
    long_news_ = false;
  }
  if (news.journal.restarted) journal_.clear();
  for (Json& entry : objects_of(news.journal.lines)) journal_.push_back(std::move(entry));
  if (news.events.restarted) forget_events();
  for (Json& event : objects_of(news.events.lines)) take_event(std::move(event));
  last_time_ = std::max(last_event_, steps_.tail().last_time());
  if (has_lines) seen_ = seen;
}

bool Run::is_of_training(const Json& event) const {
  const plot::TrainingClock& clock = steps_.tail().clock();
  if (clock.begins() == 0) return true;  // no steps tell one training from another
  const auto time = plot::parse_time(member_text(event, "time"));
  return time && clock.began_by(*time);
}

void Run::take_validation(const Json& event) {
  if (!is_of_training(event)) return;
  validation_accuracy_ = member_number(event, "accuracy", kNone);
  validation_loss_ = member_number(event, "loss", kNone);
  best_accuracy_ =
      std::isfinite(best_accuracy_) ? std::max(best_accuracy_, validation_accuracy_) : validation_accuracy_;
}

// Those of the training that has begun.
void Run::retake_validations() {
  validation_accuracy_ = validation_loss_ = best_accuracy_ = kNone;
  for (const Json& event : events_) {
    if (event_kind(event) == EventKind::evaluation) take_validation(event);
  }
}

void Run::forget_events() {
  events_.clear();
  is_job_ = works_ = waits_ = false;
  last_event_ = finished_at_ = workers_ = worker_seconds_ = workers_since_ = 0;
  retake_validations();
  reason_.clear();
}

void Run::take_event(Json event) {
  const std::optional<EventKind> kind = event_kind(event);
  const double before = last_event_, at = plot::parse_time(member_text(event, "time")).value_or(last_event_);
  last_event_ = at;
  const auto count_workers = [&](double workers, double until) {
    if (workers_since_ > 0) worker_seconds_ += workers_ * std::max(0.0, until - workers_since_);
    workers_ = workers;
    workers_since_ = until;
  };
  if (begins_job(event)) {  // one that was killed before lived until its last event
    count_workers(0, before);
    works_ = waits_ = false;
  }
  if (kind == EventKind::host_starting) is_job_ = true;
  if (kind == EventKind::generation || kind == EventKind::started) works_ = true;
  if (kind == EventKind::hold) waits_ = true;
  if (kind == EventKind::generation || kind == EventKind::finish) waits_ = false;
  if (kind == EventKind::commit) {
    const Json* const members = event.find("members");
    count_workers(members && members->is_array() ? static_cast<double>(members->as_array().size()) : workers_, at);
  } else if (kind == EventKind::evaluation) {
    take_validation(event);
  } else if (kind == EventKind::finish) {
    count_workers(0, at);
    finished_at_ = at;
    exit_code_ = static_cast<int>(member_number(event, "exit_code"));
    reason_ = member_text(event, "reason");
  } else if (kind != EventKind::goodput && at > finished_at_) {
    finished_at_ = 0;
  }
  events_.push_back(std::move(event));
}

RunSigns Run::signs(double now, bool held) const {
  return {.began = !events_.empty() || steps_.tail().began(),
          .has_steps = steps_.size() > 0 || works_,
          .finished = finished_at_ > 0 && steps_.tail().last_time() <= finished_at_ + 1,
          .exit_code = exit_code_,
          .held = held,
          .quiet_seconds = std::min(now - last_time_, now - seen_),
          .waits = waits_};
}

Json Run::row(double now, bool held) const {
  const RunSigns seen = signs(now, held);
  const double worker_seconds =
      worker_seconds_ + (seen.finished ? 0 : workers_ * std::max(0.0, (held ? now : last_time_) - workers_since_));
  Json row = Json::object({{"id", id_}, {"name", name_}, {"folder", folder_}, {"kind", is_job_ ? "job" : "run"}});
  row["state"] = state_of(seen);
  row["reason"] = seen.finished ? Json(reason_) : Json();
  row["network"] = network_;
  row["epochs"] = steps_.tail().most_epochs();
  row["epochs_total"] = epochs_total_ ? Json(*epochs_total_) : Json();
  row["steps"] = steps_.size() > 0
                     ? Json(static_cast<std::uint64_t>(std::clamp(steps_.tail().steps().back(), 0.0, kMostSteps)))
                     : Json();
  row["samples"] = steps_.tail().samples_seen();
  row["lines"] = std::uint64_t{steps_.size()};
  row["loss"] = last_value(steps_, "loss");
  row["diverged"] = plot::has_diverged(steps_.tail(), seen.finished ? reason_ : std::string());
  row["accuracy"] = last_value(steps_, "accuracy");
  row["validation_loss"] = number_or_null(validation_loss_);
  row["validation_accuracy"] = number_or_null(validation_accuracy_);
  row["best_accuracy"] = number_or_null(best_accuracy_);
  row["speed"] = waits_ ? Json() : recent_speed(steps_);
  row["workers"] = is_job_ ? Json(waits_ ? 0 : workers_) : Json(1);
  row["worker_seconds"] = is_job_ ? worker_seconds : steps_.tail().clock().now();
  row["seconds"] = steps_.tail().clock().now();
  row["updated"] = last_time_;
  row["events"] = std::uint64_t{events_.size()};
  return row;
}

}  // namespace dtrain::board
