#include <dtrain/data/dataset_stats.hpp>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/base/parallel.hpp>
#include <dtrain/base/stats.hpp>
#include <dtrain/data/image.hpp>
#include <dtrain/data/objects.hpp>

#include "codec/jpeg_decoder.hpp"

namespace dtrain::data {
namespace {

// Whole numbers, so that the sums do not depend on the order of the threads.
struct PixelSums {
  std::size_t images = 0, undecodable = 0;
  std::uint64_t pixels = 0, heights = 0, widths = 0;
  int min_h = INT32_MAX, max_h = 0, min_w = INT32_MAX, max_w = 0;
  std::array<std::uint64_t, 3> sum{}, squares{};

  void add(const Image& image) {
    ++images;
    pixels += static_cast<std::uint64_t>(image.h) * static_cast<std::uint64_t>(image.w);
    heights += static_cast<std::uint64_t>(image.h);
    widths += static_cast<std::uint64_t>(image.w);
    min_h = std::min(min_h, image.h);
    max_h = std::max(max_h, image.h);
    min_w = std::min(min_w, image.w);
    max_w = std::max(max_w, image.w);
    for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
      for (std::size_t c = 0; c < 3; ++c) {
        const std::uint64_t value = image.pixels[i + c];
        sum[c] += value;
        squares[c] += value * value;
      }
    }
  }

  void add(const PixelSums& other) {
    images += other.images;
    undecodable += other.undecodable;
    pixels += other.pixels;
    heights += other.heights;
    widths += other.widths;
    min_h = std::min(min_h, other.min_h);
    max_h = std::max(max_h, other.max_h);
    min_w = std::min(min_w, other.min_w);
    max_w = std::max(max_w, other.max_w);
    for (std::size_t c = 0; c < 3; ++c) {
      sum[c] += other.sum[c];
      squares[c] += other.squares[c];
    }
  }
};

bool decodes(const Record& record, int channels, Image& image) try {
  decode_image(record.payload, channels, image);
  return true;
} catch (const DataError&) {
  return false;
}

PixelSums sum_pixels(const RecordSet& set, std::size_t sample) {
  constexpr std::size_t kAtOnce = 64;
  PixelSums all;
  Mutex mutex;  // guards all
  for_each_in_parallel((sample + kAtOnce - 1) / kAtOnce, [&](std::size_t block) {
    PixelSums sums;
    Record record;
    Image image;
    for (std::size_t i = block * kAtOnce; i < std::min(sample, (block + 1) * kAtOnce); ++i) {
      set.read(i * set.size() / sample, record);
      if (decodes(record, 3, image)) {
        sums.add(image);
      } else {
        ++sums.undecodable;
      }
    }
    const MutexLock lock(mutex);
    all.add(sums);
  });
  return all;
}

void take_pixels(const PixelSums& sums, DatasetStats& stats) {
  stats.decoded = sums.images;
  stats.undecodable = sums.undecodable;
  if (sums.images == 0) return;
  stats.min_h = sums.min_h;
  stats.max_h = sums.max_h;
  stats.min_w = sums.min_w;
  stats.max_w = sums.max_w;
  stats.mean_h = static_cast<double>(sums.heights) / static_cast<double>(sums.images);
  stats.mean_w = static_cast<double>(sums.widths) / static_cast<double>(sums.images);
  const auto pixels = static_cast<double>(sums.pixels);
  for (std::size_t c = 0; c < 3; ++c) {
    stats.mean[c] = static_cast<double>(sums.sum[c]) / pixels;
    stats.std[c] =
        std::sqrt(std::max(0.0, static_cast<double>(sums.squares[c]) / pixels - stats.mean[c] * stats.mean[c]));
  }
}

// Labels alone say shares of the picture's size, which only decoding would tell.
void count_objects(const Record& record, DatasetStats::Objects& objects) {
  constexpr double kSmall = 32 * 32, kMedium = 96 * 96;
  ++objects.records;
  const std::vector<std::int32_t> classes = box_classes(record.labels);
  for (const std::int32_t label : classes) ++objects.classes[label];
  std::size_t boxes = classes.size();
  if (!record.objects.empty()) {
    ++objects.sized;
    const Annotations annotations = read_objects_block(record.objects);
    boxes = annotations.objects.size();
    for (const Annotation& object : annotations.objects) {
      objects.crowds += object.crowd ? 1 : 0;
      objects.masks += object.has_mask() ? 1 : 0;
      ++(object.area < kSmall ? objects.small : object.area < kMedium ? objects.medium : objects.large);
    }
  }
  objects.boxes += boxes;
  objects.without += boxes == 0 ? 1 : 0;
  objects.most = std::max(objects.most, boxes);
}

void count_label(float label, DatasetStats& stats) {
  constexpr float kLargestWhole = 1LL << 62;
  if (label == std::floor(label) && std::abs(label) <= kLargestWhole) {
    ++stats.classes[std::llround(label)];
  } else if (!std::isnan(label)) {
    ++stats.other_labels[static_cast<double>(label)];
  }
}

void read_headers(const RecordSet& set, DatasetStats& stats) {
  Record record;
  Image first;
  for (std::size_t i = 0; i < set.size(); ++i) {
    set.read(i, record);
    stats.payload_bytes += record.payload.size();
    if (has_boxes(record.labels)) count_objects(record, stats.objects);
    if (record.labels.size() == 1) count_label(record.labels[0], stats);
    const auto encoding = detect_encoding(record.payload);
    ++stats.encodings[encoding ? std::string(encoding_name(*encoding)) : "unknown"];
    if (stats.first_c > 0 || !decodes(record, kStoredChannels, first)) continue;
    stats.first_c = first.c;
    stats.first_h = first.h;
    stats.first_w = first.w;
  }
}

// A JPEG says its size before its pixels.
int edge_of_picture(ByteView picture, Image& scratch) {
  if (detect_encoding(picture) == Encoding::jpeg) {
    JpegDecoder& decoder = this_threads_jpeg_decoder();
    decoder.open(picture);
    const int edge = std::min(decoder.h(), decoder.w());
    decoder.close(false);
    return edge;
  }
  decode_image(picture, kStoredChannels, scratch);
  return std::min(scratch.h, scratch.w);
}

}  // namespace

DatasetStats read_dataset_stats(const RecordSet& set, std::size_t sample) {
  DatasetStats stats;
  stats.records = set.size();
  read_headers(set, stats);
  take_pixels(sum_pixels(set, sample == 0 ? set.size() : std::min(sample, set.size())), stats);
  return stats;
}

std::optional<int> typical_shorter_edge(const RecordSet& set) {
  constexpr std::size_t kLookedAt = 9;
  const std::size_t count = std::min(kLookedAt, set.size());
  std::vector<double> edges;
  Record record;
  Image scratch;
  for (std::size_t i = 0; i < count; ++i) {
    try {
      set.read(i * set.size() / count, record);
      edges.push_back(edge_of_picture(record.payload, scratch));
    } catch (const DataError&) {
      continue;  // the loader reports it in its turn
    }
  }
  if (edges.empty()) return std::nullopt;
  return static_cast<int>(median(std::move(edges)));
}

}  // namespace dtrain::data
