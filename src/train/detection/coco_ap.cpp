#include <dtrain/train/coco_ap.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/base/parallel.hpp>

#include "match_objects.hpp"

namespace dtrain::train {
namespace {

constexpr std::size_t kRecalls = 101;
constexpr std::array<NamedFigure, 12> kFigures{{{"ap", "AP, mean of overlaps 0.50 to 0.95", &CocoFigures::ap},
                                                {"ap50", "AP at overlap 0.50", &CocoFigures::ap50},
                                                {"ap75", "AP at overlap 0.75", &CocoFigures::ap75},
                                                {"ap_small", "AP of small objects", &CocoFigures::ap_small},
                                                {"ap_medium", "AP of medium objects", &CocoFigures::ap_medium},
                                                {"ap_large", "AP of large objects", &CocoFigures::ap_large},
                                                {"ar1", "recall with 1 object a picture", &CocoFigures::ar1},
                                                {"ar10", "recall with 10 objects a picture", &CocoFigures::ar10},
                                                {"ar100", "recall with 100 objects a picture", &CocoFigures::ar100},
                                                {"ar_small", "recall of small objects", &CocoFigures::ar_small},
                                                {"ar_medium", "recall of medium objects", &CocoFigures::ar_medium},
                                                {"ar_large", "recall of large objects", &CocoFigures::ar_large}}};

// What is measured: objects of a range of areas, with so many found ones a picture.
struct Measure {
  std::size_t area;
  std::uint32_t most;
};
enum MeasureName : std::size_t { kAll, kSmall, kMedium, kLarge, kFirst, kFirstTen };
constexpr std::array<Measure, 6> kMeasures{{{0, 100}, {1, 100}, {2, 100}, {3, 100}, {0, 1}, {0, 10}}};

// One category by one measure.
struct Measured {
  bool any = false;                                     // there is a true object
  std::array<double, kOverlaps> precision{}, recall{};  // by overlap; the precision is its mean over all recalls
};

// Precision at the recalls 0, 0.01, ... 1 of objects that come by falling scores: the best that any higher recall has.
double mean_precision(const std::vector<double>& recall, std::vector<double>& precision) {
  for (std::size_t i = precision.size(); i-- > 1;) precision[i - 1] = std::max(precision[i - 1], precision[i]);
  double sum = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < kRecalls; ++i) {
    const double wanted = i + 1 == kRecalls ? 1.0 : static_cast<double>(i) * 0.01;
    while (at < recall.size() && recall[at] < wanted) ++at;
    if (at == recall.size()) break;
    sum += precision[at];
  }
  return sum / static_cast<double>(kRecalls);
}

struct Category {
  std::vector<MatchedObject> found;
  std::array<std::uint64_t, kAreas> truths{};  // that count, by area

  void sort() {
    std::ranges::sort(found, [](const MatchedObject& a, const MatchedObject& b) {
      if (a.score != b.score) return a.score > b.score;
      return a.picture != b.picture ? a.picture < b.picture : a.rank < b.rank;
    });
  }

  Measured measure(const Measure& by) const {
    Measured measured;
    const auto truth = static_cast<double>(truths[by.area]);
    measured.any = truths[by.area] > 0;
    if (!measured.any) return measured;
    std::vector<double> recall, precision;
    for (std::size_t t = 0; t < kOverlaps; ++t) {
      const std::uint64_t bit = match_bit(by.area, t);
      recall.clear();
      precision.clear();
      double right = 0, wrong = 0;
      for (const MatchedObject& object : found) {
        if (object.rank >= by.most) continue;
        if ((object.ignored & bit) == 0) ++((object.matched & bit) != 0 ? right : wrong);
        recall.push_back(right / truth);
        precision.push_back(right / (wrong + right + std::numeric_limits<double>::epsilon()));
      }
      measured.recall[t] = recall.empty() ? 0 : recall.back();
      measured.precision[t] = mean_precision(recall, precision);
    }
    return measured;
  }
};

// How a category travels, before its found objects.
struct CategoryHead {
  std::uint64_t category = 0, found = 0;
  std::array<std::uint64_t, kAreas> truths{};
};
static_assert(std::is_trivially_copyable_v<CategoryHead> && std::is_trivially_copyable_v<MatchedObject>);

template <typename Value>
void append(std::string& bytes, std::span<const Value> values) {
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

void require_whole(bool whole) {
  if (!whole) throw PeerLost("a rank sent half of what it found");
}

template <typename Value>
void take(std::string_view& bytes, std::span<Value> values) {
  require_whole(bytes.size() >= values.size_bytes());
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size_bytes());
  bytes.remove_prefix(values.size_bytes());
}

using AllMeasures = std::array<Measured, kMeasures.size()>;

double mean(const std::array<double, kOverlaps>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(kOverlaps);
}

// The mean of value(measured) over the categories that have it.
template <typename Value>
double mean_of(std::span<const AllMeasures> categories, MeasureName name, const Value& value) {
  double sum = 0;
  std::size_t count = 0;
  for (const AllMeasures& each : categories) {
    if (!each[name].any) continue;
    sum += value(each[name]);
    ++count;
  }
  return count == 0 ? -1 : sum / static_cast<double>(count);
}

CocoFigures figures_of(std::span<const AllMeasures> categories) {
  constexpr std::size_t kAt50 = 0, kAt75 = 5;
  const auto precision = [&](MeasureName name) {
    return mean_of(categories, name, [](const Measured& each) { return mean(each.precision); });
  };
  const auto recall = [&](MeasureName name) {
    return mean_of(categories, name, [](const Measured& each) { return mean(each.recall); });
  };
  return {.ap = precision(kAll),
          .ap50 = mean_of(categories, kAll, [](const Measured& each) { return each.precision[kAt50]; }),
          .ap75 = mean_of(categories, kAll, [](const Measured& each) { return each.precision[kAt75]; }),
          .ap_small = precision(kSmall),
          .ap_medium = precision(kMedium),
          .ap_large = precision(kLarge),
          .ar1 = recall(kFirst),
          .ar10 = recall(kFirstTen),
          .ar100 = recall(kAll),
          .ar_small = recall(kSmall),
          .ar_medium = recall(kMedium),
          .ar_large = recall(kLarge)};
}

}  // namespace

std::span<const NamedFigure> coco_figure_names() { return kFigures; }

Json figures_json(const CocoFigures& figures) {
  Json json = Json::object();
  for (const NamedFigure& figure : kFigures) json[figure.name] = figures.*figure.value;
  return json;
}

// One mutex guards the categories; pictures are matched without it.
struct AveragePrecision::State {
  State(OverlapOf kind, std::size_t count) : what(kind), categories(count) {}

  std::vector<AllMeasures> measure() {
    const MutexLock lock(mutex);
    const std::span<Category> sorted = categories;  // the lock is held until every thread is done
    std::vector<AllMeasures> all(sorted.size());
    for_each_in_parallel(sorted.size(), [&](std::size_t k) {
      sorted[k].sort();
      for (std::size_t i = 0; i < kMeasures.size(); ++i) all[k][i] = sorted[k].measure(kMeasures[i]);
    });
    return all;
  }

  const OverlapOf what;
  Mutex mutex;
  std::vector<Category> categories DTRAIN_GUARDED_BY(mutex);
};

AveragePrecision::AveragePrecision(OverlapOf what, std::size_t categories)
    : state_(std::make_unique<State>(what, categories)) {}
AveragePrecision::~AveragePrecision() = default;
AveragePrecision::AveragePrecision(AveragePrecision&&) noexcept = default;

void AveragePrecision::add(std::uint64_t picture, std::span<const TrueObject> truth,
                           std::span<const FoundObject> found) {
  const PictureMatches matches = match_picture(state_->what, picture, truth, found);
  const MutexLock lock(state_->mutex);
  std::vector<Category>& categories = state_->categories;
  for (const CategoryMatches& each : matches) {
    if (each.category < 0 || each.category >= std::ssize(categories)) continue;
    Category& into = categories[static_cast<std::size_t>(each.category)];
    into.found.insert(into.found.end(), each.found.begin(), each.found.end());
    for (std::size_t area = 0; area < kAreas; ++area) into.truths[area] += each.truths[area];
  }
}

std::string AveragePrecision::bytes() const {
  const MutexLock lock(state_->mutex);
  const std::span<const Category> categories = state_->categories;
  std::string bytes;
  for (std::size_t k = 0; k < categories.size(); ++k) {
    const CategoryHead head{k, categories[k].found.size(), categories[k].truths};
    append(bytes, std::span(&head, 1));
    append(bytes, std::span(categories[k].found));
  }
  return bytes;
}

void AveragePrecision::merge(std::string_view bytes) {
  const MutexLock lock(state_->mutex);
  std::vector<Category>& categories = state_->categories;
  while (!bytes.empty()) {
    CategoryHead head;
    take(bytes, std::span(&head, 1));
    require_whole(head.category < categories.size() && head.found <= bytes.size() / sizeof(MatchedObject));
    Category& into = categories[head.category];
    const std::size_t before = into.found.size();
    into.found.resize(before + head.found);
    take(bytes, std::span(into.found).subspan(before));
    for (std::size_t area = 0; area < kAreas; ++area) into.truths[area] += head.truths[area];
  }
}

CocoFigures AveragePrecision::figures() const { return figures_of(state_->measure()); }

std::vector<CocoFigures> AveragePrecision::by_category() const {
  std::vector<CocoFigures> all;
  for (const AllMeasures& each : state_->measure()) all.push_back(figures_of(std::span(&each, 1)));
  return all;
}

}  // namespace dtrain::train
