#include <dtrain/data/pack.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/ordered_work.hpp>
#include <dtrain/base/temporaries.hpp>

#include "class_counts.hpp"
#include "list_file.hpp"
#include "listed_once.hpp"
#include "pack_image.hpp"
#include "pack_plan.hpp"
#include "pack_record.hpp"
#include "pictures.hpp"
#include "record/record_format.hpp"
#include "record/set_document.hpp"
#include "record/shard_file.hpp"
#include "set_files.hpp"

namespace dtrain::data {
namespace {

// A record, or why there is none.
struct Packed {
  std::string framed, problem;
  bool became_jpeg = false;
};

Packed pack_one(const PackItem& item, const PictureStore& store, const PackOptions& options) try {
  require_name_for_list(item);
  const SourceBytes file = store.read(item);
  const PackedPicture picture = packed_picture(file.bytes, options);
  if (!item.objects.empty()) require_annotated_picture(bytes_of(item.objects), file.bytes, picture);
  Packed packed{.framed = {}, .problem = {}, .became_jpeg = picture.became_jpeg};
  append_record(packed.framed, item.id, item.labels, bytes_of(picture.payload + item.objects));
  return packed;
} catch (const Error& error) {
  return {{}, error.what()};
}

class Packer {
 public:
  Packer(const PackOptions& options, const Pictures& pictures)
      : options_(options),
        list_(pictures.list),
        store_(*pictures.store),
        opened_(pictures.opened),
        journal_(options, pictures) {
    result_.classes = pictures.list.classes;
    begin_counts(pictures.list, result_);
    result_.unlabelled = pictures.list.unlabelled;
    result_.skipped = pictures.list.skipped;
    result_.empty_folders = pictures.list.empty_folders;
    result_.objects_left_out = pictures.list.objects_left_out;
    result_.without_objects = pictures.list.without_objects;
    result_.polygons_left_out = pictures.list.polygons_left_out;
    result_.without_mask = pictures.list.without_mask;
    result_.found_elsewhere = pictures.list.found_elsewhere;
    result_.header_row = pictures.list.header_row;
    if (splits(options)) result_.shares = shares_of(options);
  }

  PackResult run(const std::vector<Shard>& shards) {
    const std::vector<Path> left_over = not_among(shards, journal_.made_before());
    refuse_to_replace_sources(shards, left_over, opened_);
    if (!options_.force) {
      refuse_to_overwrite(journal_.takes_up() ? made_by_others(shards) : shards, journal_.named());
      refuse_to_leave(left_over);
    }
    // Once the journal names this plan, a run that goes on with it keeps what the parts hold.
    if (!journal_.takes_up()) {
      for (const Shard& shard : shards) discard_part(shard.rec);
      for (const Path& rec : not_among(shards, journal_.left_unfinished())) remove_part(rec);
    }
    std::vector<Path> planned;
    for (const Shard& shard : shards) planned.push_back(shard.rec);
    journal_.begin(planned);
    for (const Shard& shard : shards) total_ += shard.items.size();
    for (const Shard& shard : shards) {
      const auto earlier = journal_.finished(shard.rec);
      if (earlier) result_.taken_up += earlier->file.records;
      const FinishedShard finished = earlier ? *earlier : make(shard);
      done_ += earlier ? shard.items.size() : 0;
      result_.files.push_back({shard.rec, finished.file.records, finished.file.bytes});
      result_.problems.insert(result_.problems.end(), finished.problems.begin(), finished.problems.end());
      count_packed(shard.items, finished.problems, result_, labels_);
    }
    // The earlier set stays until the new one is whole.
    for (const Path& rec : left_over) remove_set_file(rec);
    journal_.forget_earlier();
    for (const Shard& shard : shards) forget_in_other_sets(shard.rec, options_.out.string());
    name_lacking_classes(list_, labels_, result_);
    return std::move(result_);
  }

 private:
  // A run with another prefix replaced them, so that this journal names them no more.
  std::vector<Shard> made_by_others(std::vector<Shard> shards) const {
    const std::vector<Path> unfinished = journal_.left_unfinished();
    std::erase_if(shards, [&](const Shard& shard) {
      return journal_.named().contains(shard.rec) || std::ranges::find(unfinished, shard.rec) != unfinished.end();
    });
    return shards;
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
            if (packed.became_jpeg) ++result_.became_jpeg;
          } else {
            finished.problems.push_back({item.file, packed.problem});
          }
          if (options_.progress) options_.progress(++done_, total_);
        });
    if (file.positions().empty()) {
      file.discard();
      journal_.withdraw();
      const PackProblem& first = finished.problems.front();
      throw DataError(fmt::format("{}: none of its pictures can be packed, {} in all; the first, {}: {}",
                                  shard.rec.string(), shard.items.size(), first.file, first.what),
                      list_.lost_hint);
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
  const PackList& list_;
  const PictureStore& store_;
  const std::vector<Path> opened_;
  PackJournal journal_;
  PackResult result_;
  PackedLabels labels_;
  std::uint64_t done_ = 0, total_ = 0;
};

}  // namespace

PackResult pack(const PackOptions& options) { return pack_opened(options, open_pictures(options)); }

PackResult pack_opened(const PackOptions& given, Pictures pictures) {
  PackOptions options = given;
  refuse_to_split_again(options, pictures.list);
  if (!options.train_ratio) options.train_ratio = usual_train_ratio(options, pictures.list);
  check_plan(options, pictures.list);
  // Twice in the list, a picture could go to training and to validation.
  if (pictures.list.of_rows && splits(options)) keep_first_rows(pictures.list);
  make_folder(options.out.parent_path());
  remove_abandoned_temporaries(options.out.parent_path(), options.out.filename().string());
  Packer packer(options, pictures);
  if (options.shuffle || splits(options)) shuffle_items(options, pictures.list.items);
  return packer.run(plan_shards(options, pictures.list));
}

}  // namespace dtrain::data
