#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include <dtrain/base/cpus.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/data/copy.hpp>
#include <dtrain/data/pack.hpp>
#include <dtrain/data/prepare.hpp>
#include <dtrain/data/remote.hpp>
#include <dtrain/net/objects.hpp>

#include "cli/command.hpp"
#include "config/synthetic_data.hpp"
#include "job/report/progress_line.hpp"
#include "pack_command.hpp"

namespace dtrain::cli {
namespace {

constexpr const char* kAuto = "auto";

struct PrepareCommand {
  std::string name;
  Path out = "data";
  std::string from;
  std::string encoding = kAuto;
  bool raw = false;
  std::uint64_t seed = 1;
  std::optional<int> train_count, val_count;
  std::string coco_labels = "largest";
  int resize = 0, shards = 1, threads = usable_cpus();
  std::optional<int> quality;
  bool force = false;
};

void bind(config::OptionSet& set, PrepareCommand& options) {
  set.group("Data set");
  const std::vector<std::string> names = data::prepare_names();
  set.add("NAME", options.name, join(names, "|"), "name of the data set: " + join(names, ", ")).required = true;
  set.add("--out", options.out, "folder or s3:// URL for NAME_train.rec, NAME_val.rec and their .idx files");
  set.add("--from", options.from, "FOLDER|URL",
          "location of the published files (default download from the publisher)");
  set.add("--force", options.force,
          "replace record files of other content (for imagenet, coco and shapes-detection: whatever they hold, but an "
          "interrupted set is finished first, and keeps the files that were complete), and remove the other files of "
          "an earlier set of NAME")
      .not_from_project = true;
  std::vector<std::string> encodings = data::encoding_names();
  encodings.insert(encodings.begin(), kAuto);
  set.add_choice(
      "--encoding", options.encoding, encodings,
      "encoding of the stored images; auto stores PNG without compression, except photographs, which keep the "
      "published encoding. raw and zstd are read by dtrain only");
  set.add("--raw", options.raw,
          "the same as --encoding raw; for coco: write the published folders train2017, val2017 and annotations, for "
          "other programs, instead of record files");
  set.add("--seed", options.seed, "N", "random seed for drawing shapes and for the order of photographs");
  set.group("Photographs: imagenet, coco; and shapes-detection");
  set.add("--resize", options.resize, "PIXELS", "length of the shorter edge in pixels; 0 keeps the size",
          data::kPackRanges.resize);
  set.add("--quality", options.quality, "N",
          "JPEG quality for encoding all pictures (default keep the original bytes of unchanged pictures)",
          data::kPackRanges.quality);
  set.add("--shards", options.shards, "N",
          "number of files per set: NAME_train_0.rec to NAME_train_<N-1>.rec, and the same for val",
          data::kPackRanges.shards);
  set.add("--threads", options.threads, "N", "number of pictures to process in parallel", data::kPackRanges.threads)
      .by_machine = true;
  set.add_choice("--coco-labels", options.coco_labels, data::coco_label_names(),
                 "labels of a COCO picture: the category of its largest box, or all boxes for detection");
  set.group("Shapes, which dtrain draws itself");
  set.add("--train-count", options.train_count, "N",
          "number of training images (default 10000 for shapes, 4000 for shapes-detection)", config::at_least(1));
  set.add("--val-count", options.val_count, "N",
          "number of validation images (default 2000 for shapes, 500 for shapes-detection)", config::at_least(1));
}

std::optional<std::uint32_t> count_of(const std::optional<int>& count) {
  return count ? std::optional(static_cast<std::uint32_t>(*count)) : std::nullopt;
}

data::PrepareResult prepare_with_progress(const PrepareCommand& options, Reporter& reporter) {
  job::ProgressLine progress(reporter);
  return data::prepare({.name = options.name,
                        .out = options.out,
                        .from = options.from,
                        .encoding = options.raw ? data::Encoding::raw : data::parse_encoding(options.encoding),
                        .seed = options.seed,
                        .train_count = count_of(options.train_count),
                        .val_count = count_of(options.val_count),
                        .resize = options.resize,
                        .shards = options.shards,
                        .threads = options.threads,
                        .quality = options.quality,
                        .coco_labels = data::parse_coco_labels(options.coco_labels).value(),
                        .as_folders = options.raw && options.name == "coco",
                        .force = options.force,
                        .progress = [&](std::string_view what, std::uint64_t done, std::uint64_t total,
                                        std::string_view unit) { progress.show(what, done, total, unit); }});
}

// The shard of NAME_train_3.rec, or of its .idx and .lst; -1 of NAME_train.rec, which is whole. nullopt: no such file.
std::optional<std::int64_t> shard_number(const std::string& set, const Path& file) {
  constexpr std::array kEndings = {".rec", ".idx", ".lst"};
  if (std::ranges::find(kEndings, file.extension()) == kEndings.end()) return std::nullopt;
  const std::string stem = file.stem().string();
  for (const char* split : {"_train", "_val"}) {
    const std::string whole = set + split;
    if (stem == whole) return -1;
    if (!stem.starts_with(whole + "_")) continue;
    const auto number = parse_integer(stem.substr(whole.size() + 1));
    return number && *number >= 0 ? number : std::nullopt;
  }
  return std::nullopt;
}

// Files of an earlier set of this name there, which the new one does not have: readers would take them for its own.
std::vector<std::string> left_over_urls(const PrepareCommand& options, net::ObjectStore& store) {
  const std::string start = options.name + "_", url = (options.out / start).string();
  const std::size_t folder_size = net::parse_s3_url(url).key.size() - start.size();
  std::vector<std::string> urls;
  store.list(url, [&](const net::ObjectEntry& entry) {
    const Path file = entry.key.substr(folder_size);
    const auto shard = file.has_parent_path() ? std::nullopt : shard_number(options.name, file);
    if (!shard) return;
    const bool is_of_new_set = options.shards == 1 ? *shard < 0 : *shard >= 0 && *shard < options.shards;
    if (!is_of_new_set) urls.push_back((options.out / file).string());
  });
  return urls;
}

void refuse_left_over(const std::vector<std::string>& urls) {
  const auto rec = std::ranges::find_if(urls, [](const std::string& url) { return url.ends_with(".rec"); });
  if (rec == urls.end()) return;
  throw UsageError(*rec + ": is there already, of an earlier set of this name, and is no file of the new one",
                   "--force removes it; or choose another --out");
}

// By the object's checksum; where the server keeps none, by the object itself.
bool holds(net::ObjectStore& store, const std::string& url, const net::ObjectState& state, ByteView content) {
  const net::ContentMatch match = store.compare(url, state, content);
  if (match != net::ContentMatch::unknown) return match == net::ContentMatch::same;
  constexpr std::uint64_t kPiece = 64u << 20;
  std::string piece;
  for (std::uint64_t at = 0; at < content.size(); at += piece.size()) {
    piece.resize(std::min<std::uint64_t>(kPiece, content.size() - at));
    store.read(url, state, at, std::as_writable_bytes(std::span(piece)));
    if (!std::ranges::equal(bytes_of(piece), content.subspan(at, piece.size()))) return false;
  }
  return true;
}

// All of them before the first is replaced.
void refuse_to_overwrite(const Path& folder, const PrepareCommand& options, net::ObjectStore& store) {
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".rec") continue;
    const std::string url = (options.out / file.path().filename()).string();
    const auto there = store.find(url);
    if (!there || holds(store, url, *there, MappedFile(file.path()).bytes())) continue;
    throw UsageError(url + ": is there already and holds other records",
                     "--force writes over it; or choose another --out");
  }
}

// Made in a folder of this machine, then sent, without the archives that it was made of. What tells readers that a set
// is there goes last.
data::PrepareResult prepare_far(const PrepareCommand& options, Reporter& reporter) {
  net::ObjectStore store;
  const std::vector<std::string> left_over = left_over_urls(options, store);
  if (!options.force) refuse_left_over(left_over);
  const config::TemporaryFolder folder;
  PrepareCommand here = options;
  here.out = folder.path();
  data::PrepareResult result = prepare_with_progress(here, reporter);
  if (!options.force) refuse_to_overwrite(folder.path(), options, store);
  for (const char* ending : {".lst", ".json", ".idx", ".rec"}) {
    for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
      if (file.path().extension() != ending) continue;
      data::copy_files(store, {.from = file.path().string(), .to = (options.out / file.path().filename()).string()});
    }
  }
  if (options.force) {
    for (const std::string& url : left_over) store.remove(url);
  }
  for (Path* file : {&result.train, &result.val}) *file = options.out / file->filename();
  return result;
}

Json document(const PrepareCommand& options, const data::PrepareResult& result) {
  const auto part = [](const Path& file, std::uint64_t records) {
    return Json::object({{"file", file.string()}, {"records", records}});
  };
  return Json::object({{"schema", "dtrain.data-prepare/1"},
                       {"name", options.name},
                       {"train", part(result.train, result.train_records)},
                       {"val", part(result.val, result.val_records)},
                       {"already_there", result.already_there}});
}

void refuse_count_of_published(const PrepareCommand& options, const config::OptionSet& set) {
  for (const char* name : {"train-count", "val-count"}) {
    if (options.name.starts_with("shapes") || !set.chosen(name)) continue;
    throw UsageError(fmt::format("--{}: is for shapes and shapes-detection; {} has as many images as were published",
                                 name, options.name),
                     "leave it out");
  }
}

void refuse(const char* option, const std::string& why, const config::OptionSet& set) {
  if (set.chosen(option)) throw UsageError(fmt::format("--{}: {}", option, why), "leave it out");
}

void refuse_what_photographs_take(const PrepareCommand& options, const config::OptionSet& set) {
  const bool as_folders = options.raw && options.name == "coco";
  for (const char* option : {"resize", "quality", "shards", "coco-labels"}) {
    if (as_folders) refuse(option, "--raw leaves the published folders as they are", set);
    if (!data::is_set_of_photographs(options.name))
      refuse(option,
             fmt::format("is for photographs; the images of {} keep their size, in one file each for training "
                         "and validation",
                         options.name),
             set);
  }
  if (options.name != "coco") refuse("coco-labels", "is for coco only", set);
}

void let_stronger_encoding_decide(PrepareCommand& options, const config::OptionSet& set) {
  if (!options.raw || options.encoding == kAuto || options.encoding == "raw") return;
  if (config::first_decides(set, "raw", "encoding", "both choose the encoding")) {
    options.encoding = kAuto;
  } else {
    options.raw = false;
  }
}

ExitCode act(const PrepareCommand& given, const config::OptionSet& set, Reporter& reporter) {
  PrepareCommand options = given;
  let_stronger_encoding_decide(options, set);
  refuse_count_of_published(options, set);
  refuse_what_photographs_take(options, set);
  const bool far = data::is_remote(options.out);
  if (far && options.raw && options.name == "coco") {
    throw UsageError("--raw: the folders of COCO are made on this machine",
                     "copy them then: dtrain data cp --recursive");
  }
  const data::PrepareResult result = far ? prepare_far(options, reporter) : prepare_with_progress(options, reporter);
  tell_problems(result.problems, reporter);
  const ExitCode code = result.problems.empty() ? ExitCode::ok : ExitCode::partly_done;
  if (reporter.json()) {
    reporter.answer_json(document(options, result));
    return code;
  }
  const char* const unit = result.of_folders ? "pictures" : "records";
  if (result.already_there) reporter.note("the files are already complete; nothing was written");
  reporter.answer(fmt::format("{}  {} {}", result.train.string(), result.train_records, unit));
  reporter.answer(fmt::format("{}  {} {}", result.val.string(), result.val_records, unit));
  return code;
}

}  // namespace

std::unique_ptr<Command> make_data_prepare() {
  auto command = make_command<PrepareCommand>("data prepare", "make the record files of a published data set", act);
  command->examples = {"dtrain data prepare shapes --out d", "dtrain data prepare shapes-detection --out d",
                       "dtrain data prepare cifar10 --out data",
                       "dtrain data prepare mnist --from /mnt/mnist --encoding png --out d",
                       "dtrain data prepare imagenet --from /mnt/ilsvrc --out data --resize 256 --shards 16"};
  command->see_also = {"data ls", "data verify", "train"};
  return command;
}

}  // namespace dtrain::cli
