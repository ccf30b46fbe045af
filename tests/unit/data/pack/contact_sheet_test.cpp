#include <vector>

#include <gtest/gtest.h>

#include <dtrain/data/contact_sheet.hpp>

namespace dtrain::data {
namespace {

// Sample i is one level everywhere: 10 * i + 100 * c, normalised.
Batch flat_batch(int n, const nn::Shape& shape, const Augment& augment, std::vector<float>& images) {
  for (int i = 0; i < n; ++i)
    for (int c = 0; c < shape.c; ++c) {
      const auto k = static_cast<std::size_t>(c);
      const float level = static_cast<float>(10 * i + 100 * c);
      images.insert(images.end(), static_cast<std::size_t>(shape.h * shape.w),
                    (level - augment.mean[k]) / augment.std[k]);
    }
  Batch batch;
  batch.n = n;
  batch.images = images.data();
  return batch;
}

int at(const Image& image, int y, int x, int c) {
  return image.pixels[static_cast<std::size_t>((y * image.w + x) * image.c + c)];
}

TEST(ContactSheet, PutsImagesInRowsAndUndoesTheNormalisation) {
  Augment augment;
  augment.mean = {123.68f, 116.779f, 103.939f};
  augment.std = {58.4f, 57.1f, 57.4f};
  std::vector<float> images;
  const nn::Shape shape{3, 4, 5};
  const Image sheet = contact_sheet(flat_batch(5, shape, augment, images), shape, augment, {.columns = 3, .gap = 1});
  EXPECT_EQ(sheet.h, 2 * 5 + 1);
  EXPECT_EQ(sheet.w, 3 * 6 + 1);
  EXPECT_EQ(at(sheet, 0, 0, 0), 0);
  EXPECT_EQ(at(sheet, 1, 13, 0), 20);   // sample 2, first pixel
  EXPECT_EQ(at(sheet, 9, 11, 2), 240);  // sample 4, last pixel, blue
  EXPECT_EQ(at(sheet, 9, 12, 2), 0);    // the gap behind it
  EXPECT_EQ(at(sheet, 9, 13, 2), 0);    // no sample 5
}

TEST(ContactSheet, ZoomMakesPixelsSquares) {
  std::vector<float> images;
  const nn::Shape shape{1, 2, 2};
  Batch batch = flat_batch(1, shape, {}, images);
  images = {1, 2, 3, 300};
  batch.images = images.data();
  const Image sheet = contact_sheet(batch, shape, {}, {.columns = 8, .zoom = 3, .gap = 0});
  EXPECT_EQ(sheet.h, 6);
  EXPECT_EQ(sheet.w, 6);
  EXPECT_EQ(at(sheet, 2, 2, 0), 1);
  EXPECT_EQ(at(sheet, 3, 2, 0), 3);
  EXPECT_EQ(at(sheet, 5, 5, 0), 255);
}

TEST(Thumbnail, KeepsTheAspectAndMagnifiesSmallPicturesByWholeNumbers) {
  const Image small{1, 2, 3, {0, 10, 20, 30, 40, 50}};
  const Image larger = thumbnail(bytes_of(encode_image(small, Encoding::png)), 10);
  EXPECT_EQ(larger.h, 6);
  EXPECT_EQ(larger.w, 9);
  EXPECT_EQ(at(larger, 5, 8, 0), 50);
  EXPECT_EQ(at(larger, 0, 3, 2), 10);
  const Image wide{3, 20, 40, std::vector<std::uint8_t>(2400, 7)};
  const Image smaller = thumbnail(bytes_of(encode_image(wide, Encoding::png)), 10);
  EXPECT_EQ(smaller.h, 5);
  EXPECT_EQ(smaller.w, 10);
}

}  // namespace
}  // namespace dtrain::data
