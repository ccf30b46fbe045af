// Samples as bytes: whoever normalises them later gets the very floats that the loader would have given.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <tuple>

#include <dtrain/base/random.hpp>
#include <dtrain/data/loader.hpp>

#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

Image noise(int c, int h, int w, std::uint32_t which) {
  RandomStream random(7, RandomUse::drawing, which, 0);
  Image image{c, h, w, std::vector<std::uint8_t>(static_cast<std::size_t>(c * h * w))};
  for (std::uint8_t& value : image.pixels) value = static_cast<std::uint8_t>(random.below(256));
  return image;
}

struct Case {
  const char* name;
  Augment augment;
};

std::vector<Case> cases() {
  return {{"as it is", {}},
          {"pad, crop, mirror", {.pad_size = 3, .random_crop = true, .random_mirror = true}},
          {"crop", {.fill_value = 9, .random_crop = true}},
          {"wide border", {.pad_size = 40, .random_crop = true, .random_mirror = true}},
          {"reflected border", {.pad_size = 2, .reflect_pad = true, .random_crop = true, .random_mirror = true}},
          {"alternately", {.pad_size = 2, .random_crop = true, .random_mirror = true, .alternate_mirror = true}},
          {"window", {.random_mirror = true, .random_resized_crop = true}},
          {"resize", {.resize = 11, .random_crop = true}},
          {"colours", {.pad_size = 2, .random_mirror = true, .max_random_h = 30, .max_random_l = 40}},
          {"cutout", {.pad_size = 2, .random_crop = true, .random_mirror = true, .cutout = 5}},
          {"cutout of a window", {.random_mirror = true, .random_resized_crop = true, .cutout = 8}},
          {"cutout of colours", {.max_random_h = 30, .cutout = 3}},
          {"warp", {.random_crop = true, .max_random_rotate_angle = 20, .max_random_scale = 1.2f}}};
}

std::vector<std::string> payloads(int c) {
  return {encode_image(noise(c, 12, 12, 1), Encoding::raw),  encode_image(noise(c, 12, 10, 2), Encoding::png),
          encode_image(noise(c, 12, 12, 3), Encoding::zstd), encode_image(noise(c, 31, 40, 4), Encoding::jpeg),
          encode_image(noise(c, 5, 7, 5), Encoding::raw),    encode_image(noise(c, 12, 12, 6), Encoding::jpeg)};
}

Path write_all(const TemporaryFolder& folder, int c, std::size_t first) {
  RecordWriter writer(folder / "x.rec");
  const std::vector<std::string> all = payloads(c);
  for (std::uint32_t i = 0; i < 4 * all.size(); ++i) writer.add(i, 0, bytes_of(all[(first + i) % all.size()]));
  writer.finish();
  return folder / "x.rec";
}

std::vector<std::vector<float>> batches(const Path& records, const LoaderOptions& options) {
  Loader loader(records, options);
  loader.start(2, {{0, 7}, {7, 10}, {17, 7}});
  std::vector<std::vector<float>> all;
  while (const auto batch = loader.next()) {
    EXPECT_EQ(batch->images == nullptr, options.as_bytes);
    all.push_back(images_of(*batch, options.shape));
  }
  return all;
}

// Whatever picture comes first, and so decides how all are stored.
TEST(Bytes, GiveTheFloatsOfTheLoaderBitForBit) {
  for (const auto& [name, augment] : cases()) {
    for (const nn::Shape& shape : {nn::Shape{3, 12, 12}, nn::Shape{3, 10, 9}, nn::Shape{1, 12, 12}}) {
      for (std::size_t first = 0; first < payloads(3).size(); ++first) {
        const TemporaryFolder folder;
        LoaderOptions options{.shape = shape, .classes = 1, .augment = augment, .seed = 4, .threads = 2};
        options.augment.mean = {120, 110.5f, 100};
        options.augment.std = {60, 61, 62};
        const Path records = write_all(folder, shape.c, first);
        const auto expected = batches(records, options);
        options.as_bytes = true;
        EXPECT_EQ(batches(records, options), expected) << name << ", " << shape.h << ", picture " << first;
      }
    }
  }
}

TEST(Bytes, OfPicturesThatAreOnlyPaddedAndCroppedAreThePicturesThemselves) {
  const TemporaryFolder folder;
  RecordWriter writer(folder / "x.rec");
  const Image picture = noise(3, 12, 12, 1);
  writer.add(0, 0, bytes_of(encode_image(picture, Encoding::raw)));
  writer.finish();
  LoaderOptions options{.shape = {3, 10, 10}, .classes = 1, .augment = {}, .as_bytes = true};
  options.augment = {.pad_size = 2, .random_crop = true, .random_mirror = true};
  Loader loader(folder / "x.rec", options);
  loader.start(0, {{0, 1}});
  const auto batch = loader.next();
  EXPECT_EQ(batch->pixels.rows, 12);
  EXPECT_TRUE(std::equal(picture.pixels.begin(), picture.pixels.end(), batch->pixels.bytes));
}

TEST(Bytes, LieInTheMemoryThatWasGiven) {
  const TemporaryFolder folder;
  std::vector<std::shared_ptr<std::byte>> given;
  LoaderOptions options{.shape = {3, 12, 12}, .classes = 1, .augment = {}, .as_bytes = true};
  options.memory = [&](std::size_t bytes) {
    std::shared_ptr<std::byte> memory(new std::byte[bytes], std::default_delete<std::byte[]>());
    return given.emplace_back(memory);
  };
  Loader loader(write_all(folder, 3, 0), options);
  loader.start(0, {{0, 3}});
  EXPECT_EQ(static_cast<const void*>(loader.next()->pixels.bytes), given.at(0).get());
}

TEST(Bytes, ABatchWithSomethingToTellIsNotTakenAheadOfItsTurn) {
  const TemporaryFolder folder;
  RecordWriter writer(folder / "x.rec");
  writer.add(0, 0, bytes_of(encode_image(noise(3, 12, 12, 1), Encoding::raw)));
  writer.add(1, 0, bytes_of(std::string("no image")));
  writer.finish();
  Loader loader(folder / "x.rec", {.shape = {3, 12, 12}, .classes = 1, .augment = {}, .shuffle = false});
  loader.start(0, {{0, 1}, {1, 1}});
  EXPECT_EQ(loader.next()->n, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it may be there, and is not given in any case
  EXPECT_FALSE(loader.next_if_ready());
  EXPECT_THROW(std::ignore = loader.next(), DataError);
}

}  // namespace
}  // namespace dtrain::data
