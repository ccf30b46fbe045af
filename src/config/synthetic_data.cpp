#include "synthetic_data.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/random.hpp>
#include <dtrain/data/class_names.hpp>
#include <dtrain/data/image.hpp>
#include <dtrain/data/prepare.hpp>
#include <dtrain/data/record.hpp>

namespace dtrain::config {
namespace {

constexpr std::int64_t kMostBytes = 16 << 20;
constexpr int kMostBatches = 64;

std::string random_image(const nn::Shape& shape, RandomStream& random) {
  data::Image image{shape.c, shape.h, shape.w, {}};
  image.pixels.resize(static_cast<std::size_t>(shape.size()));
  for (std::uint8_t& pixel : image.pixels) pixel = static_cast<std::uint8_t>(random.bits());
  return data::encode_image(image, data::Encoding::raw);
}

int batches_of(const nn::Shape& image, int batch) {
  return static_cast<int>(std::clamp<std::int64_t>(kMostBytes / (image.size() * batch), 1, kMostBatches));
}

void write_random(const Path& file, const DataOptions& options, int count) {
  RandomStream random(0, RandomUse::drawing, 0, 0);
  data::RecordWriter writer(file);
  for (int i = 0; i < count; ++i) {
    const auto label = static_cast<float>(random.below(static_cast<std::uint32_t>(options.classes)));
    writer.add(static_cast<std::uint64_t>(i), label, bytes_of(random_image(options.image, random)));
  }
  writer.finish();
}

// The file that holds them: `name`.rec in the folder, or that of a drawn set.
Path write_records(const Path& folder, const std::string& name, const DataOptions& options, int count) {
  if (options.detection) {
    data::PrepareOptions scenes;
    scenes.name = "shapes-detection";
    scenes.out = folder;
    scenes.train_count = static_cast<std::uint32_t>(count);
    scenes.val_count = 1;
    Path file = data::prepare(scenes).train;
    const std::size_t shown = data::class_names(data::find_records(file.string())).size();
    if (static_cast<std::size_t>(options.classes) < shown) {
      throw SettingError("num-classes", fmt::format("the drawn scenes show objects of {} classes", shown),
                         fmt::format("give {} or more, or record files of your own", shown));
    }
    return file;
  }
  Path file = folder / (name + ".rec");
  if (!std::filesystem::exists(file)) write_random(file, options, count);
  return file;
}

}  // namespace

Path shared_synthetic_records(const Path& folder, const DataOptions& options, int batch) {
  const nn::Shape& image = options.image;
  const int count = batches_of(image, batch) * batch;
  make_folder(folder);
  return write_records(folder,
                       fmt::format("synthetic_{}x{}x{}_{}_{}", image.c, image.h, image.w, options.classes, count),
                       options, count);
}

SyntheticData::SyntheticData(const DataOptions& options, int batch)
    : batches_(batches_of(options.image, batch)),
      records_(write_records(folder_.path(), "synthetic", options, batches_ * batch)) {}

}  // namespace dtrain::config
