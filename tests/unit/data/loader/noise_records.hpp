// Records of noise, and all that a loader gives of them.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <dtrain/base/random.hpp>
#include <dtrain/data/loader.hpp>

#include "data/temporary_folder.hpp"

namespace dtrain::data {

inline Image noise(int c, int size, std::uint32_t which) {
  RandomStream random(7, RandomUse::drawing, which, 0);
  Image image{c, size, size, std::vector<std::uint8_t>(static_cast<std::size_t>(c * size * size))};
  for (std::uint8_t& value : image.pixels) value = static_cast<std::uint8_t>(random.below(256));
  return image;
}

struct Sample {
  float label = 0;
  std::string payload;
};

// `count` images of noise, labels 0 1 2 0 1 2 ...; `change` may damage some.
inline Path write_records(const TemporaryFolder& folder, std::uint32_t count, int channels = 3,
                          const std::function<void(std::uint32_t, Sample&)>& change = {}) {
  RecordWriter writer(folder / "x.rec");
  for (std::uint32_t i = 0; i < count; ++i) {
    Sample sample{static_cast<float>(i % 3), encode_image(noise(channels, 8, i), Encoding::raw)};
    if (change) change(i, sample);
    writer.add(i, sample.label, bytes_of(sample.payload));
  }
  writer.finish();
  return folder / "x.rec";
}

inline LoaderOptions options(int threads = 2) {
  LoaderOptions result;
  result.shape = {3, 6, 6};
  result.classes = 3;
  result.seed = 5;
  result.threads = threads;
  result.augment.pad_size = 1;
  result.augment.random_crop = result.augment.random_mirror = true;
  result.augment.max_random_h = 36;
  result.augment.max_random_s = result.augment.max_random_l = 50;
  result.augment.mean = {120, 110, 100};
  return result;
}

inline std::vector<Slice> slices_of(std::uint32_t size, int batch) {
  std::vector<Slice> slices;
  for (std::uint64_t first = 0; first < size; first += static_cast<std::uint64_t>(batch))
    slices.push_back(
        {first, static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(batch), size - first))});
  return slices;
}

struct Everything {
  std::vector<float> images;
  std::vector<std::int32_t> labels;
  std::vector<std::uint32_t> ids;
  bool operator==(const Everything&) const = default;
};

inline Everything drain(Loader& loader, std::size_t sample_size) {
  Everything all;
  while (const auto batch = loader.next()) {
    const auto n = static_cast<std::size_t>(batch->n);
    all.images.insert(all.images.end(), batch->images, batch->images + n * sample_size);
    all.labels.insert(all.labels.end(), batch->labels, batch->labels + n);
    all.ids.insert(all.ids.end(), batch->sample_ids, batch->sample_ids + n);
  }
  return all;
}

inline Everything load(const Path& rec, const LoaderOptions& chosen, std::uint32_t epoch, int batch) {
  Loader loader(rec, chosen);
  loader.start(epoch, slices_of(loader.size(), batch));
  return drain(loader, static_cast<std::size_t>(chosen.shape.size()));
}

}  // namespace dtrain::data
