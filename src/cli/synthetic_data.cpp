#include "synthetic_data.hpp"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <dtrain/base/error.hpp>
#include <dtrain/base/random.hpp>
#include <dtrain/data/image.hpp>
#include <dtrain/data/record.hpp>

namespace dtrain::cli {
namespace {

constexpr std::int64_t kMostBytes = 16 << 20;
constexpr int kMostBatches = 64;

std::string random_image(const nn::Shape& shape, RandomStream& random) {
  data::Image image{shape.c, shape.h, shape.w, {}};
  image.pixels.resize(static_cast<std::size_t>(shape.size()));
  for (std::uint8_t& pixel : image.pixels) pixel = static_cast<std::uint8_t>(random.bits());
  return data::encode_image(image, data::Encoding::raw);
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "dtrain-bench-XXXXXX").string();
  if (!mkdtemp(pattern.data())) {
    throw Error(pattern + ": cannot make a folder: " + std::strerror(errno), "set TMPDIR to a folder with free space");
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

SyntheticData::SyntheticData(const nn::Shape& image, int classes, int batch) {
  batches_ = static_cast<int>(std::clamp<std::int64_t>(kMostBytes / (image.size() * batch), 1, kMostBatches));
  RandomStream random(0, RandomUse::drawing, 0, 0);
  data::RecordWriter writer(records());
  for (int i = 0; i < batches_ * batch; ++i) {
    const auto label = static_cast<float>(random.below(static_cast<std::uint32_t>(classes)));
    writer.add(static_cast<std::uint64_t>(i), label, bytes_of(random_image(image, random)));
  }
  writer.finish();
}

}  // namespace dtrain::cli
