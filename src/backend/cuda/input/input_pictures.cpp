#include "input_pictures.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <dtrain/base/error.hpp>

namespace dtrain::backend::cuda {
namespace {

bool is_group(const nn::PictureObjects& picture, std::size_t object) {
  return !picture.crowd.empty() && picture.crowd[object] != 0;
}

std::int32_t objects_in(const nn::PictureObjects& picture) {
  std::int32_t count = 0;
  for (std::size_t object = 0; object < picture.boxes.size(); ++object) count += !is_group(picture, object);
  return count;
}

// Eight bytes of 0 or 1 as eight bits, the first one lowest.
std::uint32_t bits_of(const std::uint8_t* bytes) {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t eight = 0;
  std::memcpy(&eight, bytes, sizeof eight);
  return static_cast<std::uint32_t>((eight & 0x0101010101010101u) * 0x0102040810204080u >> 56);
}

// A row of a mask: words of 32 bits.
void pack_row(const std::uint8_t* row, int width, std::uint32_t* words) {
  int x = 0;
  std::fill_n(words, mask_words(width), 0u);
  for (; x + 8 <= width; x += 8) words[x / 32] |= bits_of(row + x) << (x % 32);
  for (; x < width; ++x) words[x / 32] |= std::uint32_t{row[x] != 0} << (x % 32);
}

}  // namespace

InputPictures::~InputPictures() {
  if (memory_) device_.release_host(memory_);
}

void InputPictures::pack(const HostBatch& batch, const nn::Shape& image) {
  objects_ = 0;
  bool has_masks = false;
  for (int i = 0; i < batch.n; ++i) {
    objects_ += objects_in(batch.objects[i]);
    has_masks = has_masks || !batch.objects[i].masks.empty();
  }
  words_ = has_masks ? objects_ * image.h * cuda::mask_words(image.w) : 0;
  std::size_t end = 0;
  const auto add = [&](std::int64_t bytes) {
    constexpr std::size_t kStep = 64;
    const std::size_t begin = end;
    end += (static_cast<std::size_t>(bytes) + kStep - 1) / kStep * kStep;
    return begin;
  };
  rows_ = add(batch.n * std::int64_t{sizeof(PictureRow)});
  boxes_ = add(objects_ * std::int64_t{sizeof(nn::Box)});
  classes_ = add(objects_ * std::int64_t{sizeof(std::int32_t)});
  masks_ = add(words_ * std::int64_t{sizeof(std::uint32_t)});
  reserve(end);
  fill(batch, image);
}

void InputPictures::reserve(std::size_t bytes) {
  if (bytes <= size_) return;
  if (memory_) device_.release_host(std::exchange(memory_, nullptr));
  size_ = bytes + bytes / 4;  // the next batch may show more
  memory_ = device_.allocate_host(size_);
}

void InputPictures::fill(const HostBatch& batch, const nn::Shape& image) {
  std::int32_t object = 0;
  for (int i = 0; i < batch.n; ++i) {
    const nn::PictureObjects& picture = batch.objects[i];
    at<PictureRow>(rows_)[i] = {picture.height, picture.width, object, objects_in(picture)};
    const auto pixels = static_cast<std::size_t>(image.h) * static_cast<std::size_t>(image.w);
    const bool has_mask = picture.boxes.empty() || picture.masks.size() == picture.boxes.size() * pixels;
    DTRAIN_CHECK(has_mask || picture.masks.empty(), "a mask is as large as the image");
    DTRAIN_CHECK(has_mask || words_ == 0, "some pictures of a batch have masks, others none");
    for (std::size_t k = 0; k < picture.boxes.size(); ++k) {
      if (is_group(picture, k)) continue;
      at<nn::Box>(boxes_)[object] = picture.boxes[k];
      at<std::int32_t>(classes_)[object] = picture.classes[k];
      const std::int32_t words = cuda::mask_words(image.w);
      for (int y = 0; words_ > 0 && y < image.h; ++y) {
        pack_row(picture.masks.data() + k * pixels + static_cast<std::size_t>(y) * static_cast<std::size_t>(image.w),
                 image.w, at<std::uint32_t>(masks_) + (std::int64_t{object} * image.h + y) * words);
      }
      ++object;
    }
  }
}

}  // namespace dtrain::backend::cuda
