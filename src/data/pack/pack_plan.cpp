#include "pack_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include <dtrain/base/error.hpp>
#include <dtrain/base/random.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::data {
namespace {

using Items = std::span<const PackItem>;

constexpr double kNoShare = 1e-9;

bool has_several_classes(const PackList& list) {
  return std::ranges::any_of(list.items, [&](const PackItem& item) { return item.labels != list.items[0].labels; });
}

// The hint with what was left out, which may be what is missing.
std::string with_skipped(std::string hint, const PackList& list) {
  for (const auto& [reason, files] : list.skipped)
    hint += fmt::format("; {} {} left out: {}", count_text(files.size(), "file"), files.size() == 1 ? "was" : "were",
                        reason);
  return hint;
}

[[noreturn]] void refuse_empty_set(const std::string& prefix, const PackList& list) {
  const std::vector<std::string>& missing = list.missing;
  std::string why;
  if (!missing.empty()) {
    why = fmt::format("; {} with a label {} not there: {}", count_text(missing.size(), "file"),
                      missing.size() == 1 ? "is" : "are", join_first(missing, 3, ", "));
  }
  throw UsageError(fmt::format("{}: the classes have too few pictures for a set of its own{}", prefix, why),
                   with_skipped("setting 'train-ratio' 1 packs all pictures into one set", list));
}

// Even shards of one split, named PREFIX.rec or PREFIX_0.rec, ...
void cut(const std::string& prefix, Items items, int count, std::vector<Shard>& shards) {
  const auto parts = static_cast<std::size_t>(count);
  if (items.size() < parts) {
    throw UsageError(fmt::format("{}: {} pictures do not fill {} files", prefix, items.size(), parts),
                     "make fewer files, or choose another share for training");
  }
  for (std::size_t k = 0; k < parts; ++k) {
    const std::size_t begin = k * items.size() / parts, end = (k + 1) * items.size() / parts;
    const std::string name = parts == 1 ? prefix : fmt::format("{}_{}", prefix, k);
    shards.push_back({name + ".rec", items.subspan(begin, end - begin)});
  }
}

// How many pictures of a class go to each split. Two pictures or more give each wanted split one, as far as they go.
struct SplitCounts {
  std::size_t train = 0, validation = 0;  // the rest is for the test
};

SplitCounts split_counts(const PackShares& shares, std::size_t count) {
  const auto part = [&](double share) {
    return static_cast<std::size_t>(std::lround(static_cast<double>(count) * share));
  };
  if (count < 2) return {count, 0};
  const std::size_t train = std::clamp<std::size_t>(part(shares.train), 1, count - 1), rest = count - train;
  if (shares.validation == 0) return {train, 0};
  if (shares.test == 0) return {train, rest};
  return {train, rest - std::min(std::max<std::size_t>(part(shares.test), 1), rest - 1)};
}

// Gives each picture its split, in the order of the items, so that all splits have the classes in nearly the same
// shares. Pictures without a single label are one class.
void split_each_class(const PackShares& shares, std::vector<PackItem>& items) {
  const auto class_of = [](const PackItem& item) { return item.labels.size() == 1 ? item.labels.front() : -1.0f; };
  std::map<float, std::size_t> counts;
  for (const PackItem& item : items) ++counts[class_of(item)];
  std::map<float, SplitCounts> left;
  for (const auto& [label, count] : counts) left[label] = split_counts(shares, count);
  for (PackItem& item : items) {
    auto& [train, validation] = left[class_of(item)];
    if (train > 0) {
      item.split = PackSplit::train;
      --train;
    } else if (validation > 0) {
      item.split = PackSplit::validation;
      --validation;
    } else {
      item.split = PackSplit::test;
    }
  }
}

}  // namespace

bool splits(const PackOptions& options) { return options.train_ratio < 1 || options.test_ratio > 0; }

PackShares shares_of(const PackOptions& options) {
  const double test = options.test_ratio, train = options.train_ratio == 1.0 ? 1 - test : *options.train_ratio;
  return {train, 1 - train - test > kNoShare ? 1 - train - test : 0, test};
}

// A folder of classes becomes what a training needs, pictures to learn from and others to validate with.
double usual_train_ratio(const PackOptions& options, const PackList& list) {
  const bool splits = list.of_folder && !list.is_split && has_several_classes(list);
  return splits ? kUsualTrainShare * (1 - options.test_ratio) : 1;
}

void refuse_to_split_again(const PackOptions& options, const PackList& list) {
  if (!list.is_split || !(options.train_ratio || options.test_ratio > 0)) return;
  throw SettingError(options.train_ratio ? "train-ratio" : "test-ratio",
                     fmt::format("is {:g}, and {} is split already, by its folders",
                                 options.train_ratio.value_or(options.test_ratio), options.sources.front().string()),
                     "leave it out, or name one of the folders");
}

void check_plan(const PackOptions& options, const PackList& list) {
  if (list.items.empty()) {
    throw DataError(fmt::format("{}: no pictures", options.sources.front().string()),
                    list.unlabelled > 0 ? "none of them has a label"
                                        : with_skipped(fmt::format("dtrain packs {} files", kImagesRead), list));
  }
  require_in(kPackRanges.train_ratio, *options.train_ratio, "train-ratio");
  require_in(kPackRanges.test_ratio, options.test_ratio, "test-ratio");
  if (options.train_ratio < 1 && *options.train_ratio + options.test_ratio > 1 + kNoShare) {
    throw SettingError(
        "test-ratio",
        fmt::format("is {:g}, more than setting 'train-ratio' {:g} leaves", options.test_ratio, *options.train_ratio),
        "give shares that add up to 1 or less; validation gets the rest");
  }
  if (options.quality && options.encoding != Encoding::jpeg) {
    throw SettingError("quality", "applies to the encoding jpeg only", "leave it out, or choose the encoding jpeg");
  }
}

void shuffle_items(const PackOptions& options, std::vector<PackItem>& items) {
  RandomStream random(options.seed, RandomUse::order, 0, 1);  // epochs draw from (epoch, 0)
  for (auto left = static_cast<std::uint32_t>(items.size()); left > 1; --left) {
    std::swap(items[left - 1], items[random.below(left)]);
  }
}

std::vector<Shard> plan_shards(const PackOptions& options, PackList& list) {
  std::vector<Shard> shards;
  const bool is_split = list.is_split;
  std::vector<PackItem>& items = list.items;
  const std::string prefix = options.out.string();
  if (!is_split && !splits(options)) {
    cut(prefix, items, options.shards, shards);
    return shards;
  }
  const PackShares shares = shares_of(options);
  if (!is_split) split_each_class(shares, items);
  std::ranges::stable_sort(items, {}, &PackItem::split);
  const auto cut_split = [&](PackSplit split, const char* name, double share) {
    const auto [first, last] = std::ranges::equal_range(items, split, {}, &PackItem::split);
    if (is_split ? first == last : share == 0) return;
    if (first == last) refuse_empty_set(prefix + name, list);
    cut(prefix + name, Items(first, last), options.shards, shards);
  };
  cut_split(PackSplit::train, "_train", shares.train);
  cut_split(PackSplit::validation, "_val", shares.validation);
  cut_split(PackSplit::test, "_test", shares.test);
  return shards;
}

}  // namespace dtrain::data
