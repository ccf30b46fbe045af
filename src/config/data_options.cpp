#include "data_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/cpus.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/data/prepare.hpp>

namespace dtrain::config {

void set_machine_defaults(DataOptions& options) { options.threads = std::min(options.threads, usable_cpus()); }

void bind_data(OptionSet& set, DataOptions& options) {
  set.group("Data");
  set.add("--data-train", options.train,
          "record files with the training images: names with commas, a pattern or a prefix");
  bind_validation_data(set, options);
  bind_image(set, options);
  set.add("--num-examples", options.num_examples, "N", "train on the first N records; 0: all of the index",
          at_least(0));
  set.add("--shuffle-block", options.shuffle_block, "N",
          "shuffle runs of N records, then inside each 16 of them; 0: all records", at_least(0));
}

void bind_validation_data(OptionSet& set, DataOptions& options) {
  set.group("Data");
  set.add("--data-val", options.validation, "record files with the validation images, likewise");
  bind_data_threads(set, options);
  bind_prefetch(set, options);
  set.add("--max-bad-records", options.max_bad_records, "N", "undecodable images to skip and count before giving up",
          at_least(0));
  set.add("--cache-dir", options.cache_dir,
          "folder that keeps blocks of s3:// and https:// files; else ~/.cache/dtrain");
  set.add("--cache-size", options.cache_size_gib, "GIB", "what they may take; those unused for longest go first",
          at_least(1));
}

void bind_data_threads(OptionSet& set, DataOptions& options) {
  set_machine_defaults(options);
  set.add("--data-nthreads", options.threads, "N", "threads that decode and augment", at_least(1)).by_machine = true;
}

void bind_prefetch(OptionSet& set, DataOptions& options) {
  set.add("--prefetch", options.prefetch, "BATCHES", "loaded ahead; with one more they bound the loader's memory",
          between(1, 10000));
}

void bind_image(OptionSet& set, DataOptions& options) {
  set.group("Data");
  set.add_shape("--image-shape", options.image, "what the network sees: channels, height, width");
  set.add("--resize", options.augment.resize, "PIXELS",
          "shorter edge of every picture first, 0: as it is; with --random-resized-crop for validation only",
          between(0, 65500));
  set.add("--num-classes", options.classes, "N", "labels are 0 to N-1", at_least(2));
  set.add_channels("--rgb-mean", options.augment.mean, "subtracted from each channel, in 0 to 255");
  set.add_channels("--rgb-std", options.augment.std, "divides each channel after the mean was subtracted");
}

void bind_test_views(OptionSet& set, DataOptions& options) {
  set.group("Data");
  set.add_choice("--test-views", options.test_views, {"1", "2", "6"},
                 "average over each validation image as it is and mirrored (2), and moved by a pixel (6)");
}

void bind_augmentation(OptionSet& set, DataOptions& options) {
  data::Augment& augment = options.augment;
  set.group("Augmentation");
  set.add("--pad-size", augment.pad_size, "PIXELS", "added on each side before cropping", between(0, 65536));
  set.add_zero_or_one("--reflect-pad", augment.reflect_pad, "pad with the picture mirrored at its edge, not with grey");
  set.add_zero_or_one("--random-crop", augment.random_crop, "crop at a random place; 0: the centre");
  set.add_zero_or_one("--random-mirror", augment.random_mirror, "mirror half of the images from left to right");
  set.add_zero_or_one("--alternate-mirror", augment.alternate_mirror,
                      "with --random-mirror: by chance in the first epoch only, then every epoch the other way round");
  Option& window = set.add_zero_or_one("--random-resized-crop", augment.random_resized_crop,
                                       "a window of random area and aspect, resized, in the place of a crop");
  window.may_be_empty = true;
  window.set = [set_value = window.set](const std::string& text) { set_value(text.empty() ? "1" : text); };
  set.add("--max-random-area", augment.max_random_area, "SHARE", "largest window of --random-resized-crop",
          between(0, 1));
  set.add("--min-random-area", augment.min_random_area, "SHARE", "smallest window of --random-resized-crop",
          between(0, 1));
  set.add("--cutout", augment.cutout, "PIXELS",
          "side of a square anywhere in each image that becomes the mean; 0: none", between(0, 65500));
  set.add("--max-random-h", augment.max_random_h, "DEGREES", "largest change of hue", between(0, 180));
  set.add("--max-random-s", augment.max_random_s, "N", "largest change of saturation, of 255", between(0, 255));
  set.add("--max-random-l", augment.max_random_l, "N", "largest change of lightness, of 255", between(0, 255));
  set.add("--max-random-rotate-angle", augment.max_random_rotate_angle, "DEGREES", "largest rotation", between(0, 360));
  set.add("--max-random-aspect-ratio", augment.max_random_aspect_ratio, "SHARE",
          "largest change of the aspect ratio; with --min-random-aspect-ratio, the largest ratio", between(0, 100));
  set.add("--min-random-aspect-ratio", augment.min_random_aspect_ratio, "RATIO",
          "smallest aspect ratio of --random-resized-crop; 0: as --max-random-aspect-ratio says", between(0, 100));
  set.add("--max-random-shear-ratio", augment.max_random_shear_ratio, "SHARE", "largest shear", between(0, 1));
  set.add("--max-random-scale", augment.max_random_scale, "SCALE", "largest scale", more_than(0));
  set.add("--min-random-scale", augment.min_random_scale, "SCALE", "smallest scale", more_than(0));
}

// As short as the float itself, not as long as its double.
static Json channels(const std::array<float, 3>& values) {
  Json list = Json::array();
  for (float value : values) list.push_back(parse_number(fmt::format("{}", value)).value());
  return list;
}

static std::array<float, 3> channels_from(const Json& list) {
  std::array<float, 3> values{};
  if (list.as_array().size() != values.size()) throw DataError("a manifest's rgb_mean and rgb_std hold three numbers");
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(list.as_array()[i].as_number());
  return values;
}

Json preprocessing_of(const DataOptions& options) {
  Json json = Json::object({{"image_shape", Json::array({options.image.c, options.image.h, options.image.w})},
                            {"rgb_mean", channels(options.augment.mean)},
                            {"rgb_std", channels(options.augment.std)}});
  if (options.augment.resize > 0) json["resize"] = options.augment.resize;
  return json;
}

void take_preprocessing(const Json& preprocessing, const OptionSet& set, DataOptions& options) {
  if (!preprocessing.is_object()) return;
  const Json* mean = preprocessing.find("rgb_mean");
  const Json* std = preprocessing.find("rgb_std");
  if (mean && !set.chosen("rgb-mean")) options.augment.mean = channels_from(*mean);
  const Json* resize = preprocessing.find("resize");
  if (resize && !set.chosen("resize")) options.augment.resize = static_cast<int>(resize->as_integer());
  if (std && !set.chosen("rgb-std")) options.augment.std = channels_from(*std);
}

train::TestViews test_views(const DataOptions& options, int top_k) {
  return {.number = static_cast<int>(parse_integer(options.test_views).value()), .top_k = std::max(1, top_k)};
}

// "data/cifar10_train.rec" was most likely to come from `dtrain data prepare cifar10 --out data`.
static std::string how_to_make(const Path& file) {
  const std::string stem = file.stem().string();
  const std::string name = stem.substr(0, stem.rfind('_'));
  const auto known = data::prepare_names();
  const bool published = std::find(known.begin(), known.end(), name) != known.end();
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  return fmt::format("make it with `dtrain data prepare {} --out {}`, or of your own pictures with `dtrain data pack`",
                     published ? name : join(known, "|"), folder);
}

void require_records(const Path& files) {
  try {
    data::find_records(files.string());
  } catch (const DataError& error) {
    throw DataError(error.what(), error.hint().empty() ? how_to_make(files) : error.hint());
  }
}

void set_cache(const DataOptions& options, data::RemoteOptions& remote) {
  remote.cache_dir = options.cache_dir;
  remote.cache_size = static_cast<std::uint64_t>(options.cache_size_gib) << 30;
}

static data::RemoteOptions remote_options(const DataOptions& options) {
  data::RemoteOptions remote;
  set_cache(options, remote);
  return remote;
}

data::LoaderOptions training_loader(const DataOptions& options, std::uint64_t seed) {
  data::Augment augment = options.augment;
  if (augment.random_resized_crop) augment.resize = 0;
  return {.shape = options.image,
          .classes = options.classes,
          .augment = augment,
          .seed = seed,
          .threads = options.threads,
          .queue_batches = options.prefetch,
          .shuffle_block = static_cast<std::uint32_t>(options.shuffle_block),
          .num_examples = options.num_examples,
          .max_bad_records = options.max_bad_records,
          .remote = remote_options(options)};
}

data::LoaderOptions validation_loader(const DataOptions& options) {
  return {.shape = options.image,
          .classes = options.classes,
          .augment = {.resize = options.augment.resize, .mean = options.augment.mean, .std = options.augment.std},
          .threads = options.threads,
          .queue_batches = options.prefetch,
          .shuffle = false,
          .max_bad_records = options.max_bad_records,
          .remote = remote_options(options)};
}

void load_for(const backend::Backend& backend, data::LoaderOptions& options) {
  backend::BatchWish wish = backend.batches();
  options.as_bytes = wish.as_bytes;
  options.memory = std::move(wish.memory);
}

}  // namespace dtrain::config
