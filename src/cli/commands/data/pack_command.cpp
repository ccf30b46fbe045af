#include "pack_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include <dtrain/base/cpus.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/data/copy.hpp>
#include <dtrain/data/dataset_stats.hpp>
#include <dtrain/data/image.hpp>
#include <dtrain/net/ssh.hpp>
#include <dtrain/nn/networks.hpp>
#include <dtrain/nn/optimizer.hpp>

#include "cli/commands/train/output_places.hpp"
#include "cli/printable.hpp"
#include "config/checks/picture_size.hpp"
#include "config/compute_options.hpp"
#include "config/option_values.hpp"
#include "job/report/progress_line.hpp"
#include "pack_hints.hpp"

namespace dtrain::cli {

void bind_pack(config::OptionSet& set, PackCommand& options) {
  data::PackOptions& pack = options.pack;
  pack.threads = usable_cpus();
  set.group("Files");
  config::refuse_folders(
      set.add("--out", pack.out, "prefix of the files to write: PREFIX.rec, PREFIX.idx and PREFIX.lst"))
      .required = true;
  set.add("--force", pack.force,
          "replace files, whatever they hold, and remove the other files of an earlier set of PREFIX; an "
          "interrupted set is finished first, and keeps the files that were complete")
      .not_from_project = true;
  set.add("--shards", pack.shards, "N", "number of files: PREFIX_0.rec to PREFIX_<N-1>.rec", data::kPackRanges.shards);
  set.add("--shuffle", pack.shuffle, "shuffle the pictures before writing");
  set.add("--seed", pack.seed, "N", "random seed for --shuffle");
  set.add_number(
      "--train-ratio", "SHARE",
      "share of the pictures of each class for PREFIX_train, the rest goes to PREFIX_val; a value below 1 implies "
      "--shuffle, and 1 makes one set, PREFIX (default 0.8 for a folder with several classes, else 1, also for an "
      "archive)",
      data::kPackRanges.train_ratio,
      [&pack](const std::string& text) { pack.train_ratio = config::real_number(text, data::kPackRanges.train_ratio); },
      [&pack] { return pack.train_ratio ? fmt::format("{}", *pack.train_ratio) : std::string(); });
  set.add("--test-ratio", pack.test_ratio, "SHARE",
          "share of the pictures for PREFIX_test; a value above 0 implies --shuffle", data::kPackRanges.test_ratio);
  set.group("Pictures");
  set.add("--resize", pack.resize, "PIXELS", "length of the shorter edge in pixels; 0 keeps the size",
          data::kPackRanges.resize);
  set.add("--quality", pack.quality, "N",
          "JPEG quality for encoding all pictures (default 95, and the original bytes of unchanged JPEG files)",
          data::kPackRanges.quality);
  set.add_choice("--encoding", options.encoding, options.encodings,
                 "encoding of the stored pictures; jpeg makes JPEG of PNG, BMP, TIFF and WebP files too, which loses "
                 "detail, and png keeps every pixel");
  set.add("--threads", pack.threads, "N", "number of pictures to process in parallel", data::kPackRanges.threads)
      .by_machine = true;
}

namespace {

data::PackResult pack_with_progress(const PackCommand& command, Reporter& reporter) {
  job::ProgressLine progress(reporter);
  data::PackOptions options = command.pack;
  options.encoding = data::parse_encoding(command.encoding);  // none: what each picture has
  options.progress = [&](std::uint64_t done, std::uint64_t total) { progress.show("pack", done, total, "pictures"); };
  try {
    return data::pack(options);
  } catch (const DataError& error) {
    const std::string advice = advice_on_root(command);
    if (advice.empty()) throw;
    throw DataError(error.what(), error.hint().empty() ? advice : error.hint() + "; " + advice);
  }
}

Json names_json(const std::vector<std::string>& names) { return Json(Json::Array(names.begin(), names.end())); }

Json names_by_reason(const std::map<std::string, std::vector<std::string>>& reasons) {
  Json json = Json::object();
  for (const auto& [reason, names] : reasons) json[reason] = names_json(names);
  return json;
}

// What is left of a whole is a share such as 0.2, and no 0.19999999999999996.
Json share_json(double share) {
  constexpr double kDigits = 1e9;
  return std::round(share * kDigits) / kDigits;
}

Json document(const data::PackResult& result) {
  Json files = Json::array(), problems = Json::array(), classes = Json::array();
  Json class_pictures = Json::array(), class_objects = Json::array();
  for (const auto& file : result.files) {
    files.push_back(Json::object({{"file", file.rec.string()}, {"records", file.records}, {"bytes", file.bytes}}));
  }
  for (const auto& each : result.problems) {
    problems.push_back(Json::object({{"file", each.file}, {"what", each.what}}));
  }
  Json shares;
  if (const auto& split = result.shares) {
    shares = Json::object({{"train", share_json(split->train)},
                           {"validation", share_json(split->validation)},
                           {"test", share_json(split->test)}});
  }
  for (const std::string& name : result.classes) classes.push_back(name);
  for (const std::uint64_t count : result.class_pictures) class_pictures.push_back(count);
  for (const std::uint64_t count : result.class_objects) class_objects.push_back(count);
  return Json::object({{"schema", "dtrain.data-pack/1"},
                       {"files", files},
                       {"shares", shares},
                       {"classes", classes},
                       {"class_pictures", class_pictures},
                       {"problems", problems},
                       {"unlabelled", std::uint64_t{result.unlabelled}},
                       {"skipped", names_by_reason(result.skipped)},
                       {"empty_folders", names_json(result.empty_folders)},
                       {"untrained", names_json(result.untrained)},
                       {"unvalidated", names_json(result.unvalidated)},
                       {"class_objects", class_objects},
                       {"objects_left_out", names_by_reason(result.objects_left_out)},
                       {"without_objects", names_json(result.without_objects)},
                       {"polygons_left_out", names_json(result.polygons_left_out)},
                       {"without_mask", names_json(result.without_mask)},
                       {"found_elsewhere", result.found_elsewhere},
                       {"header_row", result.header_row},
                       {"taken_up", result.taken_up},
                       {"several_labels", result.several_labels}});
}

}  // namespace

std::string several_labels_text(std::uint64_t records) {
  return fmt::format("{} {} several labels, and a classifier takes one label", count_text(records, "record"),
                     records == 1 ? "carries" : "carry");
}

std::string small_set_options(std::uint64_t pictures) {
  constexpr std::uint64_t kSteps = 8, kSmallest = 4;
  constexpr double kLowestRate = 0.01;
  const auto usual = static_cast<std::uint64_t>(config::ComputeOptions{}.batch_size);
  const std::uint64_t batch = std::max(std::bit_floor(pictures / kSteps), kSmallest);
  if (batch >= usual) return {};
  const double share = static_cast<double>(batch) / static_cast<double>(usual);
  return fmt::format(" --batch-size {} --lr {:.1g}", batch,
                     std::max(nn::Schedule{}.base * std::sqrt(share), kLowestRate));
}

// What networks for ImageNet see, as the recipe of the next command has it.
static constexpr nn::PretrainedImages kUsualImages;
static constexpr nn::Shape kUsualInput{3, kUsualImages.size, kUsualImages.size};

std::string picture_options(int resize, int shorter_edge) {
  if (resize > 0 && resize < kUsualImages.size) return fmt::format("--image-shape 3,{0},{0} ", resize);
  if (shorter_edge <= kUsualImages.size) return {};
  return config::options_for_large_pictures(kUsualInput) + " ";
}

void warn_of_missing_end(const std::string& archive, Reporter& reporter) {
  reporter.warn(
      fmt::format("{}: the archive ends without the mark that tar writes at its end, so it may be cut short: "
                  "compare its size with that of the original",
                  archive));
}

void tell_problems(const std::vector<data::PackProblem>& problems, Reporter& reporter) {
  constexpr std::size_t kShown = 10;
  for (std::size_t i = 0; i < std::min(kShown, problems.size()); ++i) {
    reporter.warn(fmt::format("skipped {}: {}", problems[i].file, problems[i].what));
  }
  if (problems.size() > kShown) reporter.warn(fmt::format("and {} more", problems.size() - kShown));
}

namespace {

std::string first_names(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 3;
  const std::vector<std::string> first(names.begin(),
                                       names.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, names.size())));
  return join(first, ", ") + (names.size() > kShown ? ", ..." : "");
}

// How many files each reason left out, and the first of them.
void tell_skipped(const data::PackResult& result, Reporter& reporter) {
  for (const auto& [reason, files] : result.skipped) {
    const char* const kind = reason == data::kNamedByNoRow ? "folder" : "file";
    const std::string what = fmt::format("{} {} left out ({}): {}", count_text(files.size(), kind),
                                         files.size() == 1 ? "was" : "were", reason, first_names(files));
    if (data::is_unread_picture(reason)) {
      reporter.warn(fmt::format("{}; dtrain reads {}: convert these pictures first", what, data::kImagesRead));
    } else if (reason == data::kListedTwice || reason == data::kLeadsBack) {
      reporter.warn(what);
    } else {
      reporter.note(what);
    }
  }
}

// The same of objects, and pictures that show none.
void tell_objects(const data::PackResult& result, Reporter& reporter) {
  for (const auto& [reason, objects] : result.objects_left_out) {
    reporter.warn(fmt::format("{} {} left out ({}): {}", objects.size(),
                              objects.size() == 1 ? "object was" : "objects were", reason, first_names(objects)));
  }
  const std::vector<std::string>& reduced = result.polygons_left_out;
  if (!reduced.empty()) {
    reporter.warn(fmt::format("{} {} and lost polygons with fewer than three corners: {}", reduced.size(),
                              reduced.size() == 1 ? "object kept its box" : "objects kept their boxes",
                              first_names(reduced)));
  }
  const std::vector<std::string>& maskless = result.without_mask;
  if (!maskless.empty()) {
    reporter.warn(fmt::format("{} {} no mask, others have one; a network of masks takes {} for empty: {}",
                              maskless.size(), maskless.size() == 1 ? "object has" : "objects have",
                              maskless.size() == 1 ? "it" : "them", first_names(maskless)));
  }
  const std::vector<std::string>& bare = result.without_objects;
  if (!bare.empty()) {
    reporter.note(fmt::format("{} {} no object and {} kept: {}", bare.size(),
                              bare.size() == 1 ? "picture shows" : "pictures show", bare.size() == 1 ? "is" : "are",
                              first_names(bare)));
  }
}

// A user who chose neither may not know of it.
void tell_recoding(const data::PackResult& result, const config::OptionSet& set, Reporter& reporter) {
  if (result.became_jpeg == 0 || set.chosen("encoding") || set.chosen("quality")) return;
  reporter.note(fmt::format("{} stored as JPEG, which loses detail; --encoding png keeps every pixel",
                            result.became_jpeg == 1
                                ? std::string("1 picture that was no JPEG file is")
                                : fmt::format("{} pictures that were no JPEG files are", result.became_jpeg)));
}

// im2rec takes them for a class too, so the labels are those that it gives.
void warn_of_stray_pictures(const PackCommand& options, const data::PackResult& result, Reporter& reporter) {
  if (std::ranges::find(result.classes, ".") == result.classes.end()) return;
  if (result.classes.size() == 1) {
    const Path& source = options.pack.sources.front();
    reporter.warn(fmt::format("no class folders in {}, so all pictures are of one class: name the folder above, or {}",
                              source.string(),
                              options.takes_labels ? "give --labels" : pack_with("--labels FILE", source)));
    return;
  }
  reporter.warn("the pictures beside the folders of the classes are packed as a class of their own, named '.'");
}

// A classifier tells classes apart.
void warn_of_one_class(const data::PackResult& result, Reporter& reporter) {
  if (result.classes.size() != 1 || result.classes.front() == "." || !result.class_objects.empty()) return;
  reporter.warn(fmt::format("all pictures are of one class, {}, and a classifier needs at least two",
                            printable_word(result.classes.front())));
}

// Labels count the classes, so a folder without pictures shifts nothing, but the user may have meant it for a class. A
// class without pictures to train on does count, and the network never learns it.
void warn_of_missing_pictures(const data::PackResult& result, Reporter& reporter) {
  const std::vector<std::string>&empty = result.empty_folders, &untrained = result.untrained;
  if (!empty.empty()) {
    reporter.warn(fmt::format("{} {} no picture and {} no class: {}", empty.size(),
                              empty.size() == 1 ? "folder holds" : "folders hold", empty.size() == 1 ? "is" : "are",
                              first_names(empty)));
  }
  if (!untrained.empty()) {
    reporter.warn(fmt::format("{} {} no picture to train on: {}", untrained.size(),
                              untrained.size() == 1 ? "class has" : "classes have", first_names(untrained)));
  }
  const std::vector<std::string>& alone = result.unvalidated;
  if (!alone.empty()) {
    reporter.warn(fmt::format("{} pictures for training only, so that no picture validates {}: {}",
                              alone.size() == 1 ? "1 class has" : fmt::format("{} classes have", alone.size()),
                              alone.size() == 1 ? "it" : "them", first_names(alone)));
  }
}

void tell_classes(const data::PackResult& result, Reporter& reporter) {
  constexpr std::size_t kListed = 20;
  if (result.classes.empty()) return;
  std::vector<std::string> lines;
  const bool boxes = !result.class_objects.empty();
  const std::vector<std::uint64_t>& counts = boxes ? result.class_objects : result.class_pictures;
  const char* const counted = boxes ? "objects" : "pictures";
  for (std::size_t i = 0; i < result.classes.size(); ++i) {
    lines.push_back(fmt::format("{} ({})", printable_word(result.classes[i]), counts[i]));
  }
  if (lines.size() <= kListed) {
    reporter.note(fmt::format("{} with {} {}: {}",
                              lines.size() == 1 ? "1 class" : fmt::format("{} classes", lines.size()),
                              lines.size() == 1 ? "its" : "their", counted, join(lines, ", ")));
    return;
  }
  const auto [least, most] = std::ranges::minmax(counts);
  reporter.note(fmt::format("{} classes with {} to {} {} each", lines.size(), least, most, counted));
}

// Where each class went, since the user may not have asked for it.
void tell_split(const PackCommand& options, const data::PackResult& result, Reporter& reporter) {
  if (!result.shares) return;
  const data::PackShares& shares = *result.shares;
  const std::string prefix = options.pack.out.string();
  const auto part = [&](double share, const char* split) {
    return share > 0 ? fmt::format(", {:.3g} % to {}_{}", 100 * share, prefix, split) : std::string();
  };
  reporter.note(fmt::format("of each class {:.3g} % go to {}_train{}{}{}", 100 * shares.train, prefix,
                            part(shares.validation, "val"), part(shares.test, "test"),
                            options.pack.train_ratio ? "" : "; --train-ratio 1 makes one set"));
}

// The usual length of the shorter edge of the pictures in the files with this prefix; 0: unknown.
int typical_edge(const data::PackResult& result, const std::string& prefix) {
  const auto of_prefix = [&](const data::PackResult::File& file) { return file.rec.string().starts_with(prefix); };
  const auto first = std::ranges::find_if(result.files, of_prefix);
  return first == result.files.end() ? 0 : data::typical_shorter_edge(data::RecordSet({first->rec})).value_or(0);
}

// The command that trains on these files, where they are sets to train on. The recipe leaves the pixels unscaled, so
// the mean and the deviation of ImageNet stand for those of the pictures; other weights bring their own.
void tell_next_command(const PackCommand& options, const data::PackResult& result, Reporter& reporter) {
  if (options.pack.labels && result.classes.empty())
    reporter.note("the labels are numbers and name no classes: --num-classes of `dtrain train` is the largest plus 1");
  if (result.trained_classes < 2 || !result.class_objects.empty() || result.several_labels > 0) return;
  const std::string prefix = options.pack.out.string();
  const auto records = [&](std::string_view split) {
    std::uint64_t count = 0;
    for (const auto& file : result.files)
      count += file.rec.string().starts_with(prefix + std::string(split)) ? file.records : 0;
    return count;
  };
  const std::string train = records("_train") > 0 ? "_train" : "";
  constexpr const char* kScaling = "--rgb-mean 124,117,104 --rgb-std 58,57,57 ";
  const int edge = typical_edge(result, prefix + train);
  const auto quoted_set = [&](const std::string& split) { return net::shell_quoted(prefix + split); };
  const std::string files = fmt::format("--data-train {}{} --model-prefix {}", quoted_set(train),
                                        records("_val") > 0 ? " --data-val " + quoted_set("_val") : std::string(),
                                        net::shell_quoted("m/" + options.pack.out.filename().string()));
  if (options.pack.resize == 0 && config::is_far_larger(edge, kUsualInput)) {
    reporter.note(
        fmt::format("the pictures have about {} pixels at their shorter edge, and networks see about {}: --resize {} "
                    "makes far smaller files, which load faster",
                    edge, kUsualImages.size, kUsualImages.resize));
  }
  reporter.note(fmt::format("next: dtrain train --recipe imagenet --network resnet --num-layers 18 {}{}{}{}",
                            picture_options(options.pack.resize, edge), kScaling, files,
                            small_set_options(records(train))));
  reporter.note(fmt::format("or, from weights that others trained: dtrain train --finetune WEIGHTS {}", files));
}

}  // namespace

ExitCode pack_pictures(const PackCommand& options, const config::OptionSet& set, Reporter& reporter) {
  require_on_this_machine({"--out", options.pack.out}, "file");
  const data::PackResult result = pack_with_progress(options, reporter);
  if (result.taken_up > 0)
    reporter.note(fmt::format("{} {} already there from an earlier run", count_text(result.taken_up, "record"),
                              result.taken_up == 1 ? "was" : "were"));
  if (result.unlabelled > 0)
    reporter.note(fmt::format("{} without a label {} skipped{}", count_text(result.unlabelled, "picture"),
                              result.unlabelled == 1 ? "was" : "were",
                              options.pack.labels ? " in the folders that the labels name" : ""));
  if (!result.found_elsewhere.empty()) reporter.warn(result.found_elsewhere);
  if (!result.header_row.empty())
    reporter.note(fmt::format("the first row, {}, names no picture and is taken for the names of the columns",
                              printable_word(result.header_row)));
  for (const Path& source : options.pack.sources) {
    if (data::lacks_end_mark(source)) warn_of_missing_end(source.string(), reporter);
  }
  tell_skipped(result, reporter);
  tell_objects(result, reporter);
  tell_recoding(result, set, reporter);
  warn_of_stray_pictures(options, result, reporter);
  warn_of_one_class(result, reporter);
  warn_of_look_alikes(result.classes, reporter);
  warn_of_missing_pictures(result, reporter);
  if (result.several_labels > 0) reporter.warn(several_labels_text(result.several_labels));
  tell_problems(result.problems, reporter);
  if (reporter.json()) {
    reporter.answer_json(document(result));
  } else {
    for (const auto& file : result.files) {
      reporter.answer(fmt::format("{}  {} records, {}", file.rec.string(), file.records, format_bytes(file.bytes)));
    }
    tell_split(options, result, reporter);
    tell_classes(result, reporter);
    tell_next_command(options, result, reporter);
  }
  return result.problems.empty() ? ExitCode::ok : ExitCode::partly_done;
}

}  // namespace dtrain::cli
