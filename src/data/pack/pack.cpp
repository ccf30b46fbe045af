#include <dtrain/data/pack.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include <dtrain/base/error.hpp>
#include <dtrain/base/ordered_work.hpp>
#include <dtrain/base/random.hpp>
#include <dtrain/base/temporaries.hpp>

#include "class_counts.hpp"
#include "pack_image.hpp"
#include "pack_record.hpp"
#include "pictures.hpp"
#include "record/record_format.hpp"
#include "record/shard_file.hpp"

namespace dtrain::data {
namespace {

using Items = std::span<const PackItem>;

struct Shard {
  Path rec;
  Items items;
};

constexpr double kNoShare = 1e-9;

bool splits(const PackOptions& options) { return options.train_ratio < 1 || options.test_ratio > 0; }

PackShares shares_of(const PackOptions& options) {
  const double test = options.test_ratio, train = options.train_ratio == 1.0 ? 1 - test : *options.train_ratio;
  return {train, 1 - train - test > kNoShare ? 1 - train - test : 0, test};
}

bool has_several_classes(const PackList& list) {
  return std::ranges::any_of(list.items, [&](const PackItem& item) { return item.labels != list.items[0].labels; });
}

// A folder of classes becomes what a training needs, pictures to learn from and others to validate with.
double usual_train_ratio(const PackOptions& options, const PackList& list) {
  const bool splits = list.of_folder && !list.is_split && has_several_classes(list);
  return splits ? kUsualTrainShare * (1 - options.test_ratio) : 1;
}

std::string skipped_hint(const PackList& list) {
  std::string hint = fmt::format("dtrain packs {} files", kImagesRead);
  for (const auto& [reason, files] : list.skipped)
    hint += fmt::format("; {} files were left out: {}", files.size(), reason);
  return hint;
}

void check(const PackOptions& options, const PackList& list) {
  if (list.items.empty()) {
    throw DataError(fmt::format("{}: no pictures", options.sources.front().string()),
                    list.unlabelled > 0 ? "none of them has a label" : skipped_hint(list));
  }
  require_in(kPackRanges.train_ratio, *options.train_ratio, "train-ratio");
  require_in(kPackRanges.test_ratio, options.test_ratio, "test-ratio");
  if (list.is_split && splits(options)) {
    const bool train = options.train_ratio < 1;
    throw SettingError(train ? "train-ratio" : "test-ratio",
                       fmt::format("is {:g}, and {} is split already, by its folders",
                                   train ? *options.train_ratio : options.test_ratio, options.sources.front().string()),
                       "leave it out, or name one of the folders");
  }
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

void shuffle(const PackOptions& options, std::vector<PackItem>& items) {
  RandomStream random(options.seed, RandomUse::order, 0, 1);  // epochs draw from (epoch, 0)
  for (auto left = static_cast<std::uint32_t>(items.size()); left > 1; --left) {
    std::swap(items[left - 1], items[random.below(left)]);
  }
}

// Even shards of one split, named PREFIX.rec or PREFIX_0.rec, ...
void cut(const std::string& prefix, Items items, int count, std::vector<Shard>& shards) {
  const auto parts = static_cast<std::size_t>(count);
  if (items.empty()) {
    throw UsageError(fmt::format("{}: the classes have too few pictures for a set of its own", prefix),
                     "setting 'train-ratio' 1 packs all pictures into one set");
  }
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

std::vector<Shard> plan_shards(const PackOptions& options, bool is_split, std::vector<PackItem>& items) {
  std::vector<Shard> shards;
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
    cut(prefix + name, Items(first, last), options.shards, shards);
  };
  cut_split(PackSplit::train, "_train", shares.train);
  cut_split(PackSplit::validation, "_val", shares.validation);
  cut_split(PackSplit::test, "_test", shares.test);
  return shards;
}

// Those that the plan does not write.
std::vector<Path> not_among(const std::vector<Shard>& shards, std::vector<Path> files) {
  std::erase_if(files, [&](const Path& file) {
    return std::ranges::any_of(shards, [&](const Shard& shard) { return shard.rec.filename() == file.filename(); });
  });
  return files;
}

// Whether the pictures come from this record file, by its name or by the prefix of its set.
bool is_packed_from(const Path& rec, const std::vector<Path>& sources) {
  const std::string file = std::filesystem::weakly_canonical(rec).string();
  return std::ranges::any_of(sources, [&](const Path& source) {
    if (std::filesystem::is_directory(source)) return false;
    const std::string name = std::filesystem::weakly_canonical(source).string();
    return file == name || file == name + ".rec" || file.starts_with(name + "_");
  });
}

void remove_set_file(const Path& rec) {
  for (const char* ending : {".rec", ".idx", ".lst"}) {
    const Path file = Path(rec).replace_extension(ending);
    std::error_code error;
    std::filesystem::remove(file, error);
    if (error)
      throw Error(fmt::format("{}: cannot remove this file of an earlier set: {}", file.string(), error.message()));
  }
}

// Of a source that is split by its folders, where validation may have classes of its own.
std::vector<std::string> classes_without_training(const PackList& list) {
  std::vector<std::string> untrained;
  if (!list.is_split) return untrained;
  std::vector<bool> trains(list.classes.size());
  for (const PackItem& item : list.items) {
    if (item.split == PackSplit::train) trains[static_cast<std::size_t>(item.labels.front())] = true;
  }
  for (std::size_t label = 0; label < trains.size(); ++label) {
    if (!trains[label]) untrained.push_back(list.classes[label]);
  }
  return untrained;
}

// A record, or why there is none.
struct Packed {
  std::string framed, problem;
};

Packed pack_one(const PackItem& item, const PictureStore& store, const PackOptions& options) try {
  const SourceBytes file = store.read(item);
  const PackedPicture picture = packed_picture(file.bytes, options);
  if (!item.objects.empty()) require_annotated_picture(bytes_of(item.objects), file.bytes, picture);
  Packed packed;
  append_record(packed.framed, item.id, item.labels, bytes_of(picture.payload + item.objects));
  return packed;
} catch (const Error& error) {
  return {{}, error.what()};
}

void write_list(const Path& rec, Items items, const std::vector<std::size_t>& positions) {
  AtomicFile lst(Path(rec).replace_extension(".lst"));
  for (const std::size_t position : positions) {
    lst.write(fmt::format("{}\t", items[position].id));
    for (const float label : items[position].labels) lst.write(fmt::format("{:f}\t", label));
    lst.write(items[position].file + "\n");
  }
  lst.commit();
}

class Packer {
 public:
  Packer(const PackOptions& options, const Pictures& pictures)
      : options_(options), store_(*pictures.store), lost_hint_(pictures.list.lost_hint), journal_(options, pictures) {
    result_.classes = pictures.list.classes;
    begin_counts(pictures.list, result_);
    result_.unlabelled = pictures.list.unlabelled;
    result_.skipped = pictures.list.skipped;
    result_.empty_folders = pictures.list.empty_folders;
    result_.untrained = classes_without_training(pictures.list);
    result_.objects_left_out = pictures.list.objects_left_out;
    result_.without_objects = pictures.list.without_objects;
    result_.polygons_left_out = pictures.list.polygons_left_out;
    result_.without_mask = pictures.list.without_mask;
    result_.found_elsewhere = pictures.list.found_elsewhere;
    if (splits(options)) result_.shares = shares_of(options);
  }

  PackResult run(const std::vector<Shard>& shards) {
    const std::vector<Path> left_over = not_among(shards, journal_.made_before());
    if (options_.force) {
      refuse_to_remove_sources(left_over);
      for (const Path& rec : left_over) remove_set_file(rec);
    } else {
      if (!journal_.takes_up()) refuse_to_overwrite(shards);
      refuse_to_leave(left_over);
    }
    // Once the journal names this plan, a run that goes on with it keeps what the parts hold.
    if (!journal_.takes_up()) {
      for (const Shard& shard : shards) discard_part(shard.rec);
    }
    journal_.begin();
    for (const Shard& shard : shards) total_ += shard.items.size();
    for (const Shard& shard : shards) {
      const auto earlier = journal_.finished(shard.rec);
      if (earlier) result_.taken_up += earlier->file.records;
      const FinishedShard finished = earlier ? *earlier : make(shard);
      done_ += earlier ? shard.items.size() : 0;
      result_.files.push_back({shard.rec, finished.file.records, finished.file.bytes});
      result_.problems.insert(result_.problems.end(), finished.problems.begin(), finished.problems.end());
      count_packed(shard.items, finished.problems, result_);
    }
    return std::move(result_);
  }

 private:
  static void refuse_to_overwrite(const std::vector<Shard>& shards) {
    for (const Shard& shard : shards) {
      if (!std::filesystem::exists(shard.rec)) continue;
      throw UsageError(shard.rec.string() +
                           ": is there already, made from other pictures, with other options or "
                           "with other names of classes",
                       "setting 'force' writes over it; or choose another setting 'out'");
    }
  }

  // Records of an earlier set beside the new one would be taken for a part of it, with the new names of the classes.
  static void refuse_to_leave(const std::vector<Path>& left_over) {
    if (left_over.empty()) return;
    throw UsageError(left_over.front().string() +
                         ": is there already, of an earlier set of this prefix, and is no file of the new one",
                     "setting 'force' removes it; or choose another setting 'out'");
  }

  void refuse_to_remove_sources(const std::vector<Path>& left_over) const {
    for (const Path& rec : left_over) {
      if (!is_packed_from(rec, options_.sources)) continue;
      throw UsageError(rec.string() + ": the pictures come from this file, which setting 'force' would remove",
                       "choose another setting 'out'");
    }
  }

  FinishedShard make(const Shard& shard) {
    std::vector<std::uint64_t> ids;
    for (const PackItem& item : shard.items) ids.push_back(item.id);
    FinishedShard finished;
    ShardFile file(shard.rec, ids, journal_.takes_up());
    const std::vector<std::size_t> missing = still_missing(file, ids.size());
    result_.taken_up += ids.size() - missing.size();
    done_ += ids.size() - missing.size();
    make_in_order<Packed>(
        missing.size(), options_.threads,
        [&](std::size_t i) { return pack_one(shard.items[missing[i]], store_, options_); },
        [&](std::size_t i, Packed packed) {
          const PackItem& item = shard.items[missing[i]];
          if (packed.problem.empty() && too_late(file, missing[i])) packed.problem = "could not be read before";
          if (packed.problem.empty()) {
            file.add(missing[i], packed.framed);
          } else {
            finished.problems.push_back({item.file, packed.problem});
          }
          if (options_.progress) options_.progress(++done_, total_);
        });
    if (file.positions().empty()) {
      throw DataError(fmt::format("{}: none of its {} pictures can be packed; the first: {}", shard.rec.string(),
                                  shard.items.size(), finished.problems.front().what),
                      lost_hint_);
    }
    write_list(shard.rec, shard.items, file.positions());
    file.finish();
    finished.file = {shard.rec, file.positions().size(), file.bytes()};
    journal_.add(finished);
    return finished;
  }

  // Also those in between that the earlier run passed over, so that the report names them again.
  static std::vector<std::size_t> still_missing(const ShardFile& file, std::size_t count) {
    std::vector<bool> there(count);
    for (const std::size_t position : file.positions()) there[position] = true;
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < count; ++i) {
      if (!there[i]) missing.push_back(i);
    }
    return missing;
  }

  // Records stand in the order of the plan: one that could not be read by a run that was stopped cannot come later.
  static bool too_late(const ShardFile& file, std::size_t position) {
    return !file.positions().empty() && position < file.positions().back();
  }

  const PackOptions& options_;
  const PictureStore& store_;
  const std::string lost_hint_;
  PackJournal journal_;
  PackResult result_;
  std::uint64_t done_ = 0, total_ = 0;
};

}  // namespace

PackResult pack(const PackOptions& options) { return pack_opened(options, open_pictures(options)); }

PackResult pack_opened(const PackOptions& given, Pictures pictures) {
  PackOptions options = given;
  if (!options.train_ratio) options.train_ratio = usual_train_ratio(options, pictures.list);
  check(options, pictures.list);
  make_folder(options.out.parent_path());
  remove_abandoned_temporaries(options.out.parent_path(), options.out.filename().string());
  Packer packer(options, pictures);
  if (options.shuffle || splits(options)) shuffle(options, pictures.list.items);
  return packer.run(plan_shards(options, pictures.list.is_split, pictures.list.items));
}

}  // namespace dtrain::data
