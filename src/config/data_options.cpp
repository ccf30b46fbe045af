#include "data_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <dtrain/base/cpus.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "checkpoint_choice.hpp"
#include "checks/missing_records.hpp"
#include "option_values.hpp"
#include "resizing/aspect_groups.hpp"

namespace dtrain::config {

void set_machine_defaults(DataOptions& options) { options.threads = std::min(options.threads, usable_cpus()); }

static void bind_index(OptionSet& set, const std::string& name, std::optional<Path>& index,
                       const std::string& records) {
  set.add(name, index, fmt::format("MXNet's name for the index of {}, which must lie beside it", records));
}

void bind_data(OptionSet& set, DataOptions& options) {
  set.group("Data");
  set.add("--data-train", options.train,
          "record files with the training images: a prefix, a pattern, or names separated by commas")
      .comma_list = true;
  bind_index(set, "--data-train-idx", options.train_index, "--data-train");
  bind_validation_data(set, options);
  bind_cache_decoded(set, options);
  bind_index(set, "--data-val-idx", options.validation_index, "--data-val");
  bind_image(set, options);
  set.add("--num-examples", options.num_examples, "N",
          "number of records to train on, from the start of the files; 0 for all", data::kLoaderRanges.num_examples);
  set.add("--shuffle-block", options.shuffle_block, "N",
          "shuffle blocks of N consecutive records, then the records of every 16 blocks; 0 shuffles all records freely",
          at_least(0));
  set.add(
      "--balanced-sampler", options.balanced_sampler,
      "take equally many images of each class in an epoch, which still has as many images as the records: images of "
      "small classes come several times, each time augmented anew, and some of large classes do not come at all");
}

void bind_validation_data(OptionSet& set, DataOptions& options) {
  set.group("Data");
  set.add_path_or_none("--data-val", options.validation,
                       "record files with the validation images, named like --data-train")
      .comma_list = true;
  bind_data_threads(set, options);
  bind_prefetch(set, options);
  set.add("--max-bad-records", options.max_bad_records, "N",
          "number of undecodable images to skip before the run fails; in a job each worker counts its own",
          data::kLoaderRanges.max_bad_records);
  set.add("--cache-dir", options.cache_dir,
          "folder for cached blocks of s3:// and https:// files (default ~/.cache/dtrain)");
  set.add("--cache-size", options.cache_size_gib, "GIB",
          "size limit of the cache in GiB; the least recently used blocks are removed first", at_least(1));
}

void bind_data_threads(OptionSet& set, DataOptions& options) {
  set_machine_defaults(options);
  set.add("--data-nthreads", options.threads, "N", "number of threads that decode and augment images",
          data::kLoaderRanges.threads)
      .by_machine = true;
}

void bind_prefetch(OptionSet& set, DataOptions& options) {
  set.add("--prefetch", options.prefetch, "BATCHES",
          "number of batches to load ahead; the loader holds at most one batch more",
          data::kLoaderRanges.queue_batches);
}

void bind_cache_decoded(OptionSet& set, DataOptions& options) {
  set.add(
      "--cache-decoded", options.cache_decoded_gib, "GIB",
      "memory of each worker, in GiB, for decoded training images: each one is decoded once and kept while there is "
      "room, the others are decoded whole in every epoch; 0 keeps none. With any value above 0, the pixels of JPEG "
      "images differ slightly from those with 0. Validation images are not kept",
      data::kLoaderRanges.decoded_cache_gib);
}

void bind_image(OptionSet& set, DataOptions& options) {
  set.group("Data");
  set.add_shape("--image-shape", options.image, "size of the network's input: channels, height, width");
  set.add("--resize", options.augment.resize, "PIXELS",
          "length in pixels to which the shorter edge of each image is resized first; 0 keeps the size. With "
          "--random-resized-crop it applies to validation only",
          data::kAugmentRanges.resize);
  set.add("--num-classes", options.classes, "N",
          "number of classes, for a classifier at least 2; labels are 0 to N-1. Where it is not given, training takes "
          "as many as the records name",
          at_least(1));
  set.add_channels("--rgb-mean", options.augment.mean,
                   "mean of each channel, which is subtracted, on the scale 0 to 255");
  set.add_channels("--rgb-std", options.augment.std,
                   "standard deviation of each channel, by which pixels are divided after the mean is subtracted; use "
                   "255 for networks without a normalisation layer, such as mlp and vgg");
}

void bind_image_of_any_class(OptionSet& set, DataOptions& options) {
  constexpr int kAnyClasses = 1 << 20;
  options.classes = kAnyClasses;
  bind_image(set, options);
  Option& classes = *set.find("num-classes");
  classes.help = "number of classes; labels are 0 to N-1 (default any)";
  classes.show = [&options] { return options.classes == kAnyClasses ? "" : std::to_string(options.classes); };
}

void bind_checkpoint_image(OptionSet& set, DataOptions& options) {
  set.add_shape("--image-shape", options.image, kShapeOfMxnet);
  set.add_channels("--rgb-mean", options.augment.mean, "mean of each channel (default the checkpoint's)");
  set.add_channels("--rgb-std", options.augment.std, "standard deviation of each channel (default the checkpoint's)");
  set.add("--resize", options.augment.resize, "PIXELS",
          "for a classifier, pixels of the shorter edge after resizing, before the crop (default the checkpoint's)",
          data::kAugmentRanges.resize);
  bind_checkpoint_views(set, options);
  for (const char* const name : {"rgb-mean", "rgb-std", "resize", "test-views"}) set.find(name)->found_later = true;
}

static void bind_colors(OptionSet& set, data::Augment& augment) {
  const auto add = [&](const char* flag, float& most, const char* help) {
    set.add(flag, most, "SHARE", help, data::kAugmentRanges.color);
  };
  add("--brightness", augment.brightness,
      "largest random change of the brightness, as a share; the factor is drawn from 1-SHARE to 1+SHARE");
  add("--contrast", augment.contrast, "largest random change of the contrast, likewise");
  add("--saturation", augment.saturation, "largest random change of the saturation, likewise");
  set.add("--pca-noise", augment.pca_noise, "DEVIATION",
          "move the colours of each image along the main directions in which ImageNet's colours vary, by random "
          "amounts with this standard deviation, such as 0.1",
          data::kAugmentRanges.pca_noise);
  set.add("--random-erasing", augment.random_erasing, "SHARE",
          "share of the images in which a random rectangle is erased", data::kAugmentRanges.random_erasing);
  add_choice(set, "--random-erasing-mode", augment.erasing_mode, kErasingNames,
             "what --random-erasing makes of the rectangle: pixel for noise, rand for a random colour, const for the "
             "mean");
}

// Windows of random size show the padding, and keep JPEG files from being decoded at a smaller scale.
static void leave_windows_unpadded(OptionSet& set, data::Augment& augment) {
  if (!augment.random_resized_crop || augment.pad_size == 0 || set.chosen("pad-size")) return;
  augment.pad_size = 0;
  set.find("pad-size")->origin = set.find("random-resized-crop")->origin;
}

static void bind_drawn_sizes(OptionSet& set, std::vector<int>& sizes) {
  set.add_custom(
         "--min-size-train", "PIXELS,...",
         "for detectors: lengths of the shorter edge, of which each picture gets one at random, such as 640,720,800; "
         "none exceeds --image-shape, which stays as it is. By default pictures are as large as --image-shape allows",
         [&](const std::string& text) {
           std::vector<int> read;
           for (const double size : number_list(text)) {
             if (size != std::floor(size) || !data::kAugmentRanges.min_size_train.has(size))
               throw UsageError(fmt::format("must be whole numbers {}, not {}",
                                            in_words(data::kAugmentRanges.min_size_train), size));
             read.push_back(static_cast<int>(size));
           }
           sizes = std::move(read);
         },
         [&] { return fmt::format("{}", fmt::join(sizes, ",")); })
      .comma_list = true;
}

void bind_augmentation(OptionSet& set, DataOptions& options) {
  data::Augment& augment = options.augment;
  set.group("Augmentation");
  set.after_sources([&augment](OptionSet& all) { leave_windows_unpadded(all, augment); });
  set.add("--pad-size", augment.pad_size, "PIXELS",
          "pixels added on each side before cropping; with --random-resized-crop, 0 replaces the value of a recipe",
          data::kAugmentRanges.pad_size);
  set.add("--fill-value", augment.fill_value, "N",
          "value of the pixels that --pad-size adds and that a rotation or shear uncovers, on the scale 0 to 255",
          data::kAugmentRanges.fill_value);
  set.add_zero_or_one("--reflect-pad", augment.reflect_pad,
                      "1 pads by reflecting the image at its edges, 0 pads with --fill-value");
  set.add_zero_or_one("--random-crop", augment.random_crop, "1 crops at a random position, 0 crops the centre");
  set.add_zero_or_one("--random-mirror", augment.random_mirror,
                      "1 mirrors each image from left to right with probability one half");
  set.add_zero_or_one(
      "--alternate-mirror", augment.alternate_mirror,
      "with --random-mirror, 1 chooses randomly in the first epoch and then mirrors each image every other epoch");
  Option& window =
      set.add_zero_or_one("--random-resized-crop", augment.random_resized_crop,
                          "1 crops a window of random area and aspect ratio and resizes it; it replaces --random-crop");
  window.without_value = std::string(1, '1');
  set.add("--max-random-area", augment.max_random_area, "SHARE",
          "largest window of --random-resized-crop, as a share of the image's area", data::kAugmentRanges.random_area);
  set.add("--min-random-area", augment.min_random_area, "SHARE",
          "smallest window of --random-resized-crop, as a share of the image's area", data::kAugmentRanges.random_area);
  set.add("--cutout", augment.cutout, "PIXELS",
          "side in pixels of a square at a random position of each image that is set to the mean; 0 for no square",
          data::kAugmentRanges.cutout);
  add_choice(set, "--auto-augment", augment.auto_augment, kAutoAugmentNames,
             "operations drawn for each image: trivial for one of random strength (TrivialAugment), rand for some of "
             "one strength (RandAugment), imagenet for one of AutoAugment's pairs for ImageNet");
  set.add("--rand-augment-ops", augment.rand_augment_ops, "N", "operations on each image with --auto-augment rand",
          data::kAugmentRanges.rand_augment_ops);
  set.add("--rand-augment-magnitude", augment.rand_augment_magnitude, "N",
          "strength of the operations with --auto-augment rand", data::kAugmentRanges.rand_augment_magnitude);
  bind_colors(set, augment);
  set.add("--max-random-h", augment.max_random_h, "N",
          "largest random change of the hue, in units of 2 degrees, on OpenCV's scale 0 to 180",
          data::kAugmentRanges.max_random_h);
  set.add("--max-random-s", augment.max_random_s, "N", "largest random change of the saturation, on the scale 0 to 255",
          data::kAugmentRanges.max_random_s);
  set.add("--max-random-l", augment.max_random_l, "N", "largest random change of the lightness, on the scale 0 to 255",
          data::kAugmentRanges.max_random_l);
  set.add("--max-random-rotate-angle", augment.max_random_rotate_angle, "DEGREES",
          "largest random rotation, in degrees", data::kAugmentRanges.max_random_rotate_angle);
  set.add(
      "--max-random-aspect-ratio", augment.max_random_aspect_ratio, "SHARE",
      "largest random change of the aspect ratio, below 1; with --min-random-aspect-ratio, the largest aspect ratio",
      data::kAugmentRanges.random_aspect_ratio);
  set.add("--min-random-aspect-ratio", augment.min_random_aspect_ratio, "RATIO",
          "smallest aspect ratio of --random-resized-crop; 0 for 1 minus --max-random-aspect-ratio",
          data::kAugmentRanges.random_aspect_ratio);
  set.add("--max-random-shear-ratio", augment.max_random_shear_ratio, "SHARE", "largest random shear",
          data::kAugmentRanges.max_random_shear_ratio);
  set.add("--max-random-scale", augment.max_random_scale, "SCALE", "largest random scale factor",
          data::kAugmentRanges.random_scale);
  set.add("--min-random-scale", augment.min_random_scale, "SCALE", "smallest random scale factor",
          data::kAugmentRanges.random_scale);
  bind_drawn_sizes(set, augment.min_size_train);
}

// Writes the digits of the float, not the longer ones of its value as a double.
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
  json["crop"] = options.detection ? kWholePictures : "center";
  if (!options.detection) json["test_views"] = test_views(options);
  if (!options.aspect_groups.empty()) json["aspect_groups"] = aspect_groups_text(options.aspect_groups);
  const std::vector<std::string>& names = options.class_names;
  if (!names.empty()) json["classes"] = Json(Json::Array(names.begin(), names.end()));
  return json;
}

std::vector<data::ScaledSize> aspect_groups_of(const Json& preprocessing) {
  const Json* groups = preprocessing.is_object() ? preprocessing.find("aspect_groups") : nullptr;
  return groups ? aspect_groups_from(groups->as_string()) : std::vector<data::ScaledSize>();
}

std::vector<std::string> class_names_of(const Json& preprocessing) {
  std::vector<std::string> names;
  const Json* classes = preprocessing.is_object() ? preprocessing.find("classes") : nullptr;
  if (!classes) return names;
  for (const Json& name : classes->as_array()) names.push_back(name.as_string());
  return names;
}

void take_preprocessing(const Json& preprocessing, const OptionSet& set, DataOptions& options) {
  if (!preprocessing.is_object()) return;
  const Json* mean = preprocessing.find("rgb_mean");
  const Json* std = preprocessing.find("rgb_std");
  if (mean && !set.chosen("rgb-mean")) options.augment.mean = channels_from(*mean);
  if (std && !set.chosen("rgb-std")) options.augment.std = channels_from(*std);
  const Json* resize = preprocessing.find("resize");
  const bool says_size = resize || preprocessing.find("image_shape");  // older manifests state neither
  if (says_size && !set.chosen("resize")) options.augment.resize = resize ? static_cast<int>(resize->as_integer()) : 0;
}

void require_records(const Path& files) {
  try {
    data::find_records(files.string());
  } catch (const DataError& error) {
    throw DataError(error.what(), error.hint().empty() ? hint_of_missing_records(files) : error.hint());
  }
}

void require_index(const std::optional<Path>& index, const Path& records, const std::string& setting) {
  if (!index) return;
  const std::vector<Path> files = data::find_records(records.string());
  if (files.size() > 1) {
    throw UsageError(fmt::format("setting '{}' {}: {} are several files, each with an index of its own", setting,
                                 index->string(), records.string()),
                     "leave it out");
  }
  std::error_code missing;
  const Path beside = data::index_path(files.front());
  const bool is_far = data::is_remote(beside);
  if (is_far ? *index == beside : std::filesystem::equivalent(*index, beside, missing)) return;
  throw UsageError(fmt::format("setting '{}' {}: the index that is read is {}", setting,
                               data::shown_path(*index).string(), data::shown_path(beside).string()),
                   is_far ? "leave it out, or copy it there"
                          : fmt::format("ln -s $(realpath {}) {}", index->string(), beside.string()));
}

void suit_network(const nn::Graph& graph, DataOptions& options) {
  options.detection.reset();
  if (const nn::Detections* const found = nn::detection_of(graph)) {
    options.detection.emplace();
    options.detection->masks = found->mask > 0;
    options.detection->groups = options.aspect_groups;
  }
}

void suit_network(const nn::Graph& graph, const OptionSet& set, DataOptions& options) {
  suit_network(graph, options);
  if (!options.detection) return;
  if (test_views(options) != 1) {
    throw SettingError("test-views", "a detector sees each picture once", "leave it out");
  }
  const data::Augment plain;
  const auto give_way = [&](const char* name, auto data::Augment::*value) {
    if (!set.chosen(name)) options.augment.*value = plain.*value;
  };
  give_way("pad-size", &data::Augment::pad_size);
  give_way("resize", &data::Augment::resize);
  give_way("cutout", &data::Augment::cutout);
  give_way("auto-augment", &data::Augment::auto_augment);
  give_way("max-random-h", &data::Augment::max_random_h);
  give_way("max-random-s", &data::Augment::max_random_s);
  give_way("max-random-l", &data::Augment::max_random_l);
  give_way("random-resized-crop", &data::Augment::random_resized_crop);
  give_way("max-random-rotate-angle", &data::Augment::max_random_rotate_angle);
  give_way("max-random-shear-ratio", &data::Augment::max_random_shear_ratio);
  give_way("max-random-aspect-ratio", &data::Augment::max_random_aspect_ratio);
  give_way("max-random-scale", &data::Augment::max_random_scale);
  give_way("min-random-scale", &data::Augment::min_random_scale);
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

// However small, a size above 0 is above 0.
static std::uint64_t decoded_cache_bytes(const DataOptions& options) {
  return static_cast<std::uint64_t>(std::ceil(options.cache_decoded_gib * (1 << 30)));
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
          .balanced = options.balanced_sampler,
          .repeats = options.repeated_augment,
          .num_examples = options.num_examples,
          .max_bad_records = options.max_bad_records,
          .remote = remote_options(options),
          .detection = options.detection,
          .decoded_cache = decoded_cache_bytes(options)};
}

data::LoaderOptions validation_loader(const DataOptions& options) {
  data::LoaderOptions loader{
      .shape = options.image,
      .classes = options.classes,
      .augment = {.resize = options.augment.resize, .mean = options.augment.mean, .std = options.augment.std},
      .threads = options.threads,
      .queue_batches = options.prefetch,
      .shuffle = false,
      .max_bad_records = options.max_bad_records,
      .leave_out_bad = true,
      .remote = remote_options(options),
      .detection = options.detection};
  if (loader.detection) loader.detection->runs = std::exchange(loader.detection->masks, false);
  return loader;
}

void load_for(const backend::Backend& backend, data::LoaderOptions& options) {
  backend::BatchWish wish = backend.batches();
  options.as_bytes = wish.as_bytes && options.augment.random_erasing == 0;  // noise is made of floats
  options.memory = std::move(wish.memory);
}

}  // namespace dtrain::config
