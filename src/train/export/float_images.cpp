#include "float_images.hpp"

namespace dtrain::train {

const float* float_images(const backend::HostBatch& batch, const nn::Shape& shape, std::vector<float>& room) {
  if (batch.images) return batch.images;
  room.resize(static_cast<std::size_t>(batch.n * shape.size()));
  float* value = room.data();
  for (int n = 0; n < batch.n; ++n) {
    for (int c = 0; c < shape.c; ++c) {
      for (int y = 0; y < shape.h; ++y) {
        for (int x = 0; x < shape.w; ++x) *value++ = nn::pixel_value(batch.pixels, n, shape.c, shape.w, y, x, c);
      }
    }
  }
  return room.data();
}

}  // namespace dtrain::train
