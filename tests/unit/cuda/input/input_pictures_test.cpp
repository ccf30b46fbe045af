// What pictures show, as it goes to a device.
#include "input/input_pictures.hpp"

#include <gtest/gtest.h>

#include "common/replay_device.hpp"

namespace dtrain::backend::cuda {
namespace {

// Odd sizes, so that a row of a mask ends within a word.
constexpr nn::Shape kImage{3, 3, 37};

nn::PictureObjects picture_of(int objects, int first, std::vector<std::uint8_t> crowd) {
  nn::PictureObjects picture;
  picture.height = 2, picture.width = 30;
  for (int k = 0; k < objects; ++k) {
    picture.boxes.push_back({static_cast<float>(first + k), 0, 9, 9});
    picture.classes.push_back(first + k);
    for (int pixel = 0; pixel < kImage.h * kImage.w; ++pixel) {
      picture.masks.push_back((pixel * (first + k + 3)) % 5 < 2);
    }
  }
  picture.crowd = std::move(crowd);
  return picture;
}

TEST(InputPictures, PackObjectsWithoutGroupsAndMasksAsBits) {
  const std::vector<nn::PictureObjects> pictures = {picture_of(2, 0, {0, 1}), picture_of(0, 0, {}),
                                                    picture_of(3, 10, {})};
  const auto device = make_replay_device();
  InputPictures packed(*device);
  packed.pack({.n = 3, .objects = pictures.data()}, kImage);
  ASSERT_EQ(packed.objects(), 4);
  const std::vector<std::pair<int, int>> expected = {{0, 0}, {2, 0}, {2, 1}, {2, 2}};  // picture and object
  for (std::size_t k = 0; k < expected.size(); ++k) {
    const auto [picture, object] = expected[k];
    EXPECT_EQ(packed.classes()[k],
              pictures[static_cast<std::size_t>(picture)].classes[static_cast<std::size_t>(object)]);
    EXPECT_EQ(packed.boxes()[k].left, static_cast<float>(packed.classes()[k]));
    for (int pixel = 0; pixel < kImage.h * kImage.w; ++pixel) {
      const int y = pixel / kImage.w, x = pixel % kImage.w;
      const std::uint32_t word = packed.masks()[(static_cast<int>(k) * kImage.h + y) * mask_words(kImage.w) + x / 32];
      EXPECT_EQ(word >> (x % 32) & 1, (pixel * (packed.classes()[k] + 3)) % 5 < 2 ? 1u : 0u) << pixel;
    }
  }
  EXPECT_EQ(packed.rows()[2].first, 1);
  EXPECT_EQ(packed.rows()[2].objects, 3);
  EXPECT_EQ(packed.rows()[1].objects, 0);
  EXPECT_EQ(packed.rows()[1].width, 30);
}

}  // namespace
}  // namespace dtrain::backend::cuda
