#include <dtrain/train/found_objects.hpp>

#include "paste_mask.hpp"

namespace dtrain::train {

data::PixelBox box_in_picture(const nn::PictureObjects& picture, const nn::Box& box) {
  const double across = static_cast<double>(picture.original_width) / picture.width,
               down = static_cast<double>(picture.original_height) / picture.height;
  const double left = box.left, top = box.top, right = box.right, bottom = box.bottom;
  return {left * across, top * down, (right - left) * across, (bottom - top) * down};
}

FoundObjects found_objects(const nn::Detections& layer, const nn::PictureObjects& picture,
                           std::span<const float> result) {
  const auto size = static_cast<std::size_t>(layer.row_size()), most = static_cast<std::size_t>(layer.detections);
  FoundObjects found;
  if (layer.mask > 0) found.masks.reserve(most);  // objects point into it
  for (std::size_t row = 0; row < most; ++row) {
    const std::span<const float> values = result.subspan(row * size, size);
    if (values[4] == 0) break;
    const data::PixelBox box = box_in_picture(picture, {values[0], values[1], values[2], values[3]});
    FoundObject& object = found.objects.emplace_back(FoundObject{.category = static_cast<std::int32_t>(values[5]),
                                                                 .score = static_cast<double>(values[4]),
                                                                 .area = box.area(),
                                                                 .box = box});
    if (layer.mask == 0) continue;
    const nn::Box edges{static_cast<float>(box.left), static_cast<float>(box.top),
                        static_cast<float>(box.left + box.width), static_cast<float>(box.top + box.height)};
    object.mask = &found.masks.emplace_back(paste_mask(values.subspan(nn::Detections::kRow), layer.mask, edges,
                                                       picture.original_height, picture.original_width));
  }
  return found;
}

}  // namespace dtrain::train
