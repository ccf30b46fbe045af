#include <dtrain/train/report_json.hpp>

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include <dtrain/base/error.hpp>
#include <dtrain/base/event_kind.hpp>
#include <dtrain/base/overloaded.hpp>

namespace dtrain::train {
namespace {

// One description of each report serves both directions: `fields` is called with a visitor that either puts a member
// into the JSON or takes it out.
struct Writer {
  Json& json;
  template <typename Value>
  void operator()(const char* key, const Value& value) const {
    json[key] = Json(value);
  }
  void operator()(const char* key, const std::chrono::duration<double>& value) const { json[key] = value.count(); }
  void operator()(const char* key, const Path& value) const { json[key] = value.string(); }
  void operator()(const char* key, const std::vector<LossPart>& parts) const {
    if (parts.empty()) return;
    Json& list = json[key] = Json::object({});
    for (const LossPart& part : parts) list[part.name] = part.value;
  }
  void operator()(const char* key, const std::vector<int>& numbers) const {
    Json& list = json[key] = Json::array();
    for (const int number : numbers) list.push_back(number);
  }
  void operator()(const char* key, const std::optional<CocoFigures>& figures) const {
    if (figures) json[key] = figures_json(*figures);
  }
  void operator()(const char* key, const bool& value) const {
    if (value) json[key] = true;
  }
  void top_k(int k) const {
    if (k > 0) json["top_k"] = k;
  }
  void top_k_accuracy(double value) const {
    if (!std::isnan(value)) json["top_k_accuracy"] = value;
  }
};

double number_of(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.as_number();
}

struct Reader {
  const Json& json;
  template <typename Value>
  void operator()(const char* key, Value& value) const {
    value = static_cast<Value>(json.at(key).as_integer());
  }
  void operator()(const char* key, bool& value) const { value = json.find(key) != nullptr; }
  void operator()(const char* key, double& value) const { value = number_of(json.at(key)); }
  void operator()(const char* key, std::string& value) const { value = json.at(key).as_string(); }
  void operator()(const char* key, Path& value) const { value = json.at(key).as_string(); }
  void operator()(const char* key, std::chrono::duration<double>& value) const {
    value = std::chrono::duration<double>(json.at(key).as_number());
  }
  void operator()(const char* key, std::vector<LossPart>& parts) const {
    const Json* const list = json.find(key);
    if (!list) return;
    for (const auto& [name, value] : list->as_object()) parts.push_back({name, number_of(value)});
  }
  void operator()(const char* key, std::vector<int>& numbers) const {
    for (const Json& number : json.at(key).as_array()) numbers.push_back(static_cast<int>(number.as_integer()));
  }
  void operator()(const char* key, std::optional<CocoFigures>& figures) const {
    const Json* const list = json.find(key);
    if (!list) return;
    figures.emplace();
    for (const NamedFigure& each : coco_figure_names()) *figures.*each.value = list->at(each.name).as_number();
  }
  void top_k(int& k) const {
    if (const Json* const value = json.find("top_k")) k = static_cast<int>(value->as_integer());
  }
  void top_k_accuracy(double& value) const {
    const Json* const found = json.find("top_k_accuracy");
    value = found ? number_of(*found) : kNotAskedFor;
  }
};

template <typename Visit, typename Report>
void metrics(const Visit& visit, Report& r) {
  visit("loss", r.loss);
  visit("accuracy", r.accuracy);
  visit.top_k_accuracy(r.top_k_accuracy);
}

template <typename Report, typename Kind>
concept Is = std::same_as<std::remove_const_t<Report>, Kind>;

template <typename Visit, Is<StepReport> Report>
void fields(const Visit& visit, Report& r) {
  visit("epoch", r.epoch);
  visit("step", r.step);
  visit("steps", r.steps);
  visit("samples", r.samples);
  visit("samples_seen", r.samples_seen);
  metrics(visit, r);
  visit("learning_rate", r.learning_rate);
  visit("gradient_norm", r.gradient_norm);
  visit("seconds", r.time);
  visit("losses", r.parts);
}

template <typename Visit, Is<EpochReport> Report>
void fields(const Visit& visit, Report& r) {
  visit("epoch", r.epoch);
  metrics(visit, r);
  visit("seconds", r.time);
}

template <typename Visit, Is<EvaluationReport> Report>
void fields(const Visit& visit, Report& r) {
  visit("epoch", r.epoch);
  visit("samples", r.samples);
  visit.top_k(r.top_k);
  metrics(visit, r);
  visit("seconds", r.time);
  visit("boxes", r.boxes);
  visit("masks", r.masks);
}

template <typename Visit, Is<SavedReport> Report>
void fields(const Visit& visit, Report& r) {
  visit("file", r.path);
}

template <typename Visit, Is<ShardsReport> Report>
void fields(const Visit& visit, Report& r) {
  visit("shards", r.shards);
}

template <typename Visit, Is<WarningReport> Report>
void fields(const Visit& visit, Report& r) {
  visit("message", r.text);
  visit("note", r.is_note);
}

template <typename Visit, Is<LostReport> Report>
void fields(const Visit& visit, Report& r) {
  visit("message", r.text);
}

// In the variant's order.
constexpr EventKind kKinds[] = {EventKind::step,   EventKind::epoch,   EventKind::evaluation, EventKind::checkpoint,
                                EventKind::shards, EventKind::warning, EventKind::lost};
static_assert(std::size(kKinds) == std::variant_size_v<ReportEvent>);

template <std::size_t index = 0>
ReportEvent read(std::optional<EventKind> kind, const Json& json) {
  if constexpr (index == std::size(kKinds)) {
    throw DataError(fmt::format("\"{}\" is no event of a training run", json.at("event").as_string()));
  } else {
    if (kind != kKinds[index]) return read<index + 1>(kind, json);
    std::variant_alternative_t<index, ReportEvent> report;
    fields(Reader{json}, report);
    return report;
  }
}

template <typename Value>
bool replace_by_later(std::optional<Value>& last, const Value& value) {
  if (last && value <= *last) return false;
  last = value;
  return true;
}

}  // namespace

void tell(Observer& observer, const ReportEvent& event) {
  std::visit(Overloaded{[&](const StepReport& report) { observer.on_step(report); },
                        [&](const EpochReport& report) { observer.on_epoch(report); },
                        [&](const EvaluationReport& report) { observer.on_evaluation(report); },
                        [&](const SavedReport& report) { observer.on_checkpoint(report.path); },
                        [&](const ShardsReport& report) { observer.on_shards(report); },
                        [&](const WarningReport& report) {
                          if (report.is_note) return observer.on_note(report.text);
                          observer.on_warning(report.text);
                        },
                        [&](const LostReport& report) { observer.on_lost(report.text); }},
             event);
}

Json to_json(const ReportEvent& event) {
  Json json = make_event(kKinds[event.index()]);
  std::visit([&](const auto& report) { fields(Writer{json}, report); }, event);
  return json;
}

ReportEvent report_from_json(const Json& json) { return read(event_kind(json), json); }

void replay(const Json& event, Observer& observer) { tell(observer, report_from_json(event)); }

void OnlyNews::on_event(const ReportEvent& event) {
  if (is_news(event)) tell(observer_, event);
}

bool OnlyNews::is_news(const ReportEvent& event) {
  const auto dated = [this](auto& last, const auto& date) { return fresh_ = replace_by_later(last, date); };
  return std::visit(
      Overloaded{[&](const StepReport& r) { return dated(last_step_, std::tuple(r.epoch, r.step)); },
                 [&](const EpochReport& r) { return dated(last_epoch_, r.epoch); },
                 [&](const EvaluationReport& r) { return dated(last_evaluation_, r.epoch); },
                 [&](const SavedReport& r) { return saved_.insert(r.path).second || fresh_; },
                 [&](const ShardsReport&) { return true; }, [&](const LostReport&) { return true; },
                 [&](const WarningReport& r) { return std::exchange(last_warning_, r.text) != r.text || fresh_; }},
      event);
}

}  // namespace dtrain::train
