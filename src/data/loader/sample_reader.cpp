#include "sample_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include <dtrain/base/error.hpp>

#include "detection_sample.hpp"

namespace dtrain::data {
namespace {

std::string text_of_shape(const nn::Shape& shape) { return fmt::format("{},{},{}", shape.c, shape.h, shape.w); }

}  // namespace

std::string hint_of_label(int classes, bool are_fixed) {
  if (!are_fixed) return fmt::format("setting 'num-classes' is {}: give the number of classes of the data", classes);
  return fmt::format("the checkpoint has {} class{}: choose data with the classes that it was trained on", classes,
                     classes == 1 ? "" : "es");
}

std::int32_t checked_label(const RecordSet& file, std::uint32_t position, const std::vector<float>& labels, int classes,
                           bool are_fixed) {
  if (labels.empty()) throw DataError(file.place(position) + " has no label");
  if (labels.size() > 1) {
    throw DataError(
        fmt::format("{} has {} labels, and a classifier trains on one class", file.place(position), labels.size()),
        "pack the pictures again, from a list (.lst) with one label in each line or from a folder for each class");
  }
  const float label = labels.front();
  const bool fits = label >= 0 && label < static_cast<float>(classes);
  if (fits && label == static_cast<float>(static_cast<int>(label))) return static_cast<int>(label);
  if (fits) throw DataError(fmt::format("{} has label {}, which is no whole number", file.place(position), label));
  throw DataError(fmt::format("{} has label {}, outside 0 to {}", file.place(position), label, classes - 1),
                  hint_of_label(classes, are_fixed));
}

namespace {

// How many records of a file are looked at to learn of what kind it is.
constexpr std::size_t kLookAt = 16;

// The shape of the first picture, where none of the first records has the channels of the network. A file may mix grey
// and colour, as photographs collected from the web do. nullopt: one fits, or none can be read.
std::optional<nn::Shape> other_channels(const RecordSet& file, const nn::Shape& wanted) {
  Record record;
  Image image;
  std::optional<nn::Shape> found;
  for (std::size_t position = 0; position < std::min(kLookAt, file.size()); ++position) {
    try {
      file.read(position, record);
      decode_image(record.payload, kStoredChannels, image);
    } catch (const DataError&) {
      continue;  // next() reports it in its turn
    }
    if (image.c == wanted.c) return std::nullopt;
    if (!found) found = nn::Shape{image.c, image.h, image.w};
  }
  return found;
}

// Grey pictures lose nothing in a network that takes colour, so that only colour pictures are refused: where none of
// the first records fits, the file is of another kind than the network.
void check_channels(const RecordSet& file, const LoaderOptions& options) {
  const nn::Shape& wanted = options.shape;
  const auto found = other_channels(file, wanted);
  if (!found) return;
  if (found->c < wanted.c) {
    if (options.remote.tell) {
      options.remote.tell(
          fmt::format("{}: its first pictures are grey: a network that takes colour sees a grey picture in all {} "
                      "channels",
                      file.name(), wanted.c));
    }
    return;
  }
  throw DataError(fmt::format("{} holds images of {} (channels, height, width), the network takes {}", file.name(),
                              text_of_shape(*found), text_of_shape(wanted)),
                  fmt::format("setting 'image-shape' {},{},{} fits this data", found->c, wanted.h, wanted.w));
}

// A file of the other kind is refused before anything is loaded.
void check_first_kind(const RecordSet& file, const LoaderOptions& options) {
  Record record;
  try {
    file.read(0, record);
  } catch (const DataError&) {
    return;  // next() reports it in its turn
  }
  if (!is_of_kind(record, options)) refuse_kind(file.place(0), options);
}

}  // namespace

void check_loader(const RecordSet& file, const LoaderOptions& options) {
  check_augment(options.augment);
  const LoaderRanges& ranges = kLoaderRanges;
  require_in(ranges.threads, options.threads, "data-nthreads");
  require_in(ranges.queue_batches, options.queue_batches, "prefetch");
  require_in(ranges.classes, options.classes, "num-classes");
  require_in(ranges.num_examples, options.num_examples, "num-examples");
  require_in(ranges.max_bad_records, options.max_bad_records, "max-bad-records");
  require_in(ranges.repeats, options.repeats, "repeated-augment");
  if (options.balanced && options.shuffle_block > 0) {
    throw SettingError("balanced-sampler", "cannot be combined with shuffled blocks",
                       "leave setting 'shuffle-block' out");
  }
  const nn::Shape& shape = options.shape;
  if ((shape.c != 1 && shape.c != 3) || shape.h < 1 || shape.w < 1) {
    throw SettingError("image-shape", fmt::format("{} is no image of 1 or 3 channels", text_of_shape(shape)),
                       "give channels, height and width, such as 3,28,28");
  }
  if (options.augment.cutout > std::min(shape.h, shape.w)) {
    throw SettingError("cutout",
                       fmt::format("{} is larger than an image of {}x{}", options.augment.cutout, shape.h, shape.w),
                       fmt::format("give at most {}; 0 cuts nothing out", std::min(shape.h, shape.w)));
  }
  if (options.detection) {
    check_detection(options);
  } else if (!options.augment.min_size_train.empty()) {
    throw SettingError(
        "min-size-train", "draws the size of a detector's pictures, and the network is a classifier",
        "leave it out; setting 'max-random-scale' and setting 'random-resized-crop' are for classifiers");
  }
  check_first_kind(file, options);
  check_channels(file, options);
}

nn::Shape stored_shape(const RecordSet& file, const LoaderOptions& options) {
  Record record;
  for (std::size_t position = 0; position < std::min(kLookAt, file.size()); ++position) {
    try {
      file.read(position, record);
      return stored_shape(record.payload, options.augment, options.shape);
    } catch (const DataError&) {
      continue;  // next() reports it in its turn
    }
  }
  return options.shape;
}

bool SampleReader::read(const Turn& turn, std::uint32_t epoch, const SampleSlot& out, std::vector<BadRecord>& bad) {
  auto [position, copy] = turn;
  const SampleKey key{options_.seed, epoch, position, copy};  // also of the record that comes in its place
  const std::int64_t tries = std::min<std::int64_t>(options_.max_bad_records + 1, size_);
  for (std::int64_t i = 0; i < tries; ++i, position = (position + 1) % size_) {
    if (!load(position, key, out, bad)) continue;
    label_ =
        out.objects ? 0 : checked_label(file_, position, record_.labels, options_.classes, options_.has_fixed_classes);
    return true;
  }
  return false;
}

// The picture of record_, kept or decoded at full size.
const Image& SampleReader::whole_picture(std::uint32_t position) {
  if (const Image* const found = kept_ ? kept_->find(position) : nullptr) return *found;
  decode_image(record_.payload, options_.shape.c, image_);
  if (kept_ && detect_encoding(record_.payload) != Encoding::raw) kept_->keep(position, image_);
  return image_;
}

// Makes the sample of record_.
void SampleReader::fill(std::uint32_t position, const SampleKey& key, const SampleSlot& out) {
  const auto& [changes, shape] = std::tie(options_.augment, options_.shape);
  if (out.objects) {
    read_detection(record_, whole_picture(position), file_.place(position), options_, key, out);
  } else if (kept_ && out.place) {
    *out.place = augment_to_bytes(whole_picture(position), changes, key, shape, stored_, out.bytes);
  } else if (kept_) {
    augment(whole_picture(position), changes, key, shape, out.image);
  } else if (out.place) {
    *out.place = decode_to_bytes(record_.payload, changes, key, shape, stored_, image_, out.bytes);
  } else {
    decode_and_augment(record_.payload, changes, key, shape, image_, out.image);
  }
}

bool SampleReader::load(std::uint32_t position, const SampleKey& key, const SampleSlot& out,
                        std::vector<BadRecord>& bad) {
  std::string reason;
  try {
    file_.read(position, record_);
    if (!is_of_kind(record_, options_)) refuse_kind(file_.place(position), options_);
    fill(position, key, out);
    return true;
  } catch (const UnfitRecord&) {
    throw;
  } catch (const DataError& error) {
    reason = error.what();
  }
  const std::string where = file_.place(position);
  const bool named = reason.starts_with(where.substr(0, where.find(": record")));
  bad.push_back({position, named ? reason : fmt::format("{}: {}", where, reason)});
  return false;
}

}  // namespace dtrain::data
